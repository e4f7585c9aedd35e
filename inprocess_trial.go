package fantasia

import (
	"fmt"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// metric implements leader.
func (s *inProcess) metric() string { return s.reported }

// report implements leader.
func (s *inProcess) report(t *Trial, metric string, step int, value float64) (err error) {
	_ = s.do(func() { err = s.reportedAt(t, metric, step, value) }) // an error is that of the next call
	return err
}

// reportedAt is report with s.mu held.
func (s *inProcess) reportedAt(t *Trial, metric string, step int, value float64) error {
	if err := s.alive(t); err != nil {
		return err
	}
	id, err := s.engine.Attempt(t.client, t.number, t.attempt)
	if err != nil {
		return err
	}
	now := time.Now()
	if s.engine.Forgotten(id) {
		c, err := s.journal.Curve(t.number)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		s.step(engine.Recalled{At: now, Trial: t.number, Curve: c})
	}
	m := &messaging.Measurement{Version: messaging.SchemaVersion, AttemptID: id, Worker: t.client, Step: int64(step), At: now}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		m.Diverged = []string{metric}
	} else {
		m.Metrics = messaging.Metrics{metric: value}
	}
	if s.stopped == nil {
		s.step(engine.Measured{At: now, Measurement: m})
	}
	return s.instructed(t)
}

// instruction implements leader.
func (s *inProcess) instruction(t *Trial) (err error) {
	_ = s.do(func() { err = s.instructed(t) })
	return err
}

// alive returns why the trial has ended; nil if it has not. s.mu MUST be held.
func (s *inProcess) alive(t *Trial) error {
	select {
	case <-t.over:
		return t.why
	default:
		return s.stopped
	}
}

// instructed returns why the evaluation should end; nil if it should not. s.mu MUST be
// held.
func (s *inProcess) instructed(t *Trial) error {
	if err := s.alive(t); err != nil {
		return err
	}
	next, err := s.engine.Instruct(t.client, t.number, t.attempt)
	switch {
	case err != nil:
		return err
	case next.Do == engine.Prune:
		return fmt.Errorf("%w: %s", ErrStopped, next.Reason)
	case next.Do == engine.Abandon:
		return fmt.Errorf("%w: %s", ErrEnded, next.Reason)
	}
	return nil
}
