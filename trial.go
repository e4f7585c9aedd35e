package fantasia

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// Trial is a trial that is being evaluated. Read its values with [Param.Of]. Safe for concurrent
// use.
type Trial struct {
	study           *Study
	client          string
	number, attempt int
	at              Point

	once sync.Once
	over chan struct{} // closed when the trial has ended
	why  error         // set before that
}

func (t *Trial) point() Point { return t.at }

// end ends the trial. Only the first call counts.
func (t *Trial) end(why error) {
	t.once.Do(func() {
		t.why = why
		close(t.over)
	})
}

// Number returns the trial's number, counted from 1.
func (t *Trial) Number() int { return t.number }

// Values returns the trial's values by name: float64, int64, string or bool. Do not change the
// map.
func (t *Trial) Values() map[string]any { return t.at.Values() }

// Seed returns a seed for the evaluation's own random numbers: the same whenever the trial is
// evaluated, below 2^31.
func (t *Trial) Seed() uint64 { return engine.TrialSeed(t.study.seed, t.number) }

// Report says what value the objective has reached at a step, which must grow from report to
// report: the trial's curve, by which [EarlyStopping] decides. The error wraps ErrStopped if the
// trial should stop early, and ErrEnded if it has ended, for example because the study has: return
// it from the objective.
func (t *Trial) Report(step int, value float64) error {
	s := t.study
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := t.alive(); err != nil {
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
	return t.instructed()
}

// ShouldStop reports whether the trial should stop early, or has ended. The objective then
// returns ErrStopped.
func (t *Trial) ShouldStop() bool {
	t.study.mu.Lock()
	defer t.study.mu.Unlock()
	return t.instructed() != nil
}

// alive returns why the trial has ended; nil if it has not. The study's lock MUST be held.
func (t *Trial) alive() error {
	select {
	case <-t.over:
		return t.why
	default:
		return t.study.stopped
	}
}

// instructed returns why the evaluation should end; nil if it should not. The study's lock MUST
// be held.
func (t *Trial) instructed() error {
	if err := t.alive(); err != nil {
		return err
	}
	next, err := t.study.engine.Instruct(t.client, t.number, t.attempt)
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
