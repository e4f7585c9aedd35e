package inprocess

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// Report implements library.Binding.
func (s *Study) Report(t *library.Evaluation, metric string, step int, value float64) (err error) {
	_ = s.do(func() { err = s.reportedAt(t, metric, step, value) }) // an error is that of the next call
	return err
}

// reportedAt is Report with s.mu held.
func (s *Study) reportedAt(t *library.Evaluation, metric string, step int, value float64) error {
	if err := s.alive(t); err != nil {
		return err
	}
	id, err := s.engine.Attempt(t.Client, t.Number, t.Attempt)
	if err != nil {
		return err
	}
	now := time.Now()
	if s.engine.Forgotten(id) {
		c, err := s.journal.Curve(t.Number)
		if err != nil {
			return fmt.Errorf("%w: %w", journal.ErrDamaged, err)
		}
		s.step(engine.Recalled{At: now, Trial: t.Number, Curve: c})
	}
	m := &messaging.Measurement{Version: messaging.SchemaVersion, AttemptID: id, Worker: t.Client, Step: int64(step), At: now}
	if !study.Finite(value) {
		m.Diverged = []string{metric}
	} else {
		m.Metrics = messaging.Metrics{metric: value}
	}
	if s.stopped == nil {
		s.step(engine.Measured{At: now, Measurement: m})
	}
	return s.instructed(t)
}

// Instruction implements library.Binding.
func (s *Study) Instruction(t *library.Evaluation) (err error) {
	_ = s.do(func() { err = s.instructed(t) })
	return err
}

// alive returns why the trial has ended; nil if it has not. s.mu MUST be held.
func (s *Study) alive(t *library.Evaluation) error {
	if err := t.Ended(); err != nil {
		return err
	}
	return s.stopped
}

// instructed returns why the evaluation should end; nil if it should not. s.mu MUST be
// held.
func (s *Study) instructed(t *library.Evaluation) error {
	if err := s.alive(t); err != nil {
		return err
	}
	next, err := s.engine.Instruct(t.Client, t.Number, t.Attempt)
	switch {
	case err != nil:
		return err
	case next.Do == engine.Prune:
		return fmt.Errorf("%w: %s", library.ErrStopped, next.Reason)
	case next.Do == engine.Abandon:
		return fmt.Errorf("%w: %s", library.ErrEnded, next.Reason)
	}
	return nil
}
