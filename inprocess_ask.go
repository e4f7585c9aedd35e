package fantasia

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// ask is a call of Ask that waits.
type ask struct {
	client string
	trial  *Trial
	err    error
	due    int64         // of the journal, when one of them was set
	done   chan struct{} // closed then
}

// ask implements leader.
func (s *inProcess) ask(ctx context.Context) (*Trial, error) {
	s.mu.Lock()
	a, err := s.seek()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.await(ctx, a)
}

// seek asks the engine for a trial. s.mu MUST be held.
func (s *inProcess) seek() (*ask, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	a := &ask{client: s.client(), done: make(chan struct{})}
	s.waiting[a.client] = a
	s.step(engine.Seek{At: time.Now(), Client: a.client, Want: 1})
	return a, nil
}

// await waits for the trial.
func (s *inProcess) await(ctx context.Context, a *ask) (*Trial, error) {
	select {
	case <-a.done:
		if err := s.durable(a.due); err != nil {
			return nil, err
		}
		return a.trial, a.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[a.client] == a {
		delete(s.waiting, a.client)
		s.step(engine.Seek{At: time.Now(), Client: a.client})
	} else if a.trial != nil { // it came at the last moment
		_ = s.told(a.trial, measured{}, ErrInterrupted)
	}
	return nil, context.Cause(ctx)
}

// turn implements leader. If a suggestion is ready, the result and the next trial share an fsync; else the fsync
// goes on while the optimiser works.
func (s *inProcess) turn(ctx context.Context, t *Trial, found measured, err error) (*Trial, error) {
	var next *ask
	var failed error
	kept := s.do(func() {
		if failed = s.told(t, found, err); failed == nil || errors.Is(failed, ErrEnded) {
			next, failed = s.seek()
		}
	})
	s.progress.tell(s.standing)
	if failed != nil {
		return nil, failed
	}
	if kept != nil {
		return nil, kept
	}
	return s.await(ctx, next)
}

// usable returns why no trial can be asked for; nil if one can.
func (s *inProcess) usable() error {
	if s.stopped != nil {
		return s.stopped
	}
	if status := s.engine.Status(); status.State.Terminal() {
		return fmt.Errorf("the study has %w: %s", ErrEnded, status.Reason)
	}
	return nil
}

// handOut gives a trial to the call that waits for it, if one does.
func (s *inProcess) handOut(t *record.Trial) {
	attempt := t.Last()
	if t.State != study.TrialRunning || attempt == nil || s.waiting[attempt.Worker] == nil {
		return
	}
	client := attempt.Worker
	trial := &Trial{lead: s, seed: s.seed, client: client, number: t.Number, attempt: attempt.Number, at: Point{s.space, t.Point}, judged: s.aims, over: make(chan struct{})}
	s.holding[client] = trial
	a := s.waiting[client]
	delete(s.waiting, client)
	a.trial, a.due = trial, s.journal.Due()
	close(a.done)
}

// retire notes that a trial has ended.
func (s *inProcess) retire(t *record.Trial) {
	s.progress.add(s.result(t))
	if a := t.Last(); a != nil {
		if h := s.holding[a.Worker]; h != nil && h.number == t.Number {
			h.end(fmt.Errorf("trial %d has %w", t.Number, ErrEnded))
			delete(s.holding, a.Worker)
		}
	}
}

// release ends all calls that wait for a trial.
func (s *inProcess) release(why error) {
	for client, a := range s.waiting {
		a.err = why
		if why == ErrEnded { //nolint:errorlint // the sentinel itself gets the reason
			a.err = s.usable()
		}
		a.due = s.journal.Due()
		close(a.done)
		delete(s.waiting, client)
	}
}

// tell implements leader.
func (s *inProcess) tell(t *Trial, found measured, err error) error {
	var failed error
	kept := s.do(func() { failed = s.told(t, found, err) })
	s.progress.tell(s.standing)
	if failed != nil {
		return failed
	}
	return kept
}

// told applies how a trial has ended. s.mu MUST be held.
func (s *inProcess) told(t *Trial, found measured, err error) error {
	if s.stopped != nil {
		return s.stopped
	}
	if s.holding[t.client] != t {
		return fmt.Errorf("trial %d has %w", t.number, ErrEnded)
	}
	event := engine.Told{At: time.Now(), Client: t.client, Trial: t.number, Attempt: t.attempt}
	switch {
	case err == nil:
		event.Outcome, event.Values, event.Metrics = messaging.OutcomeCompleted, found.values, found.metrics
	case errors.Is(err, ErrStopped):
		event.Outcome = messaging.OutcomePruned
	case errors.Is(err, ErrInfeasible):
		event.Outcome, event.Failure = messaging.OutcomeInfeasible, failure(messaging.ReasonInfeasible, err)
	case errors.Is(err, ErrInterrupted):
		event.Outcome, event.Failure = messaging.OutcomeHandedBack, failure(messaging.ReasonLeaving, err)
	default:
		event.Outcome, event.Failure = messaging.OutcomeFailed, failure(messaging.ReasonReported, err)
	}
	answer := s.step(event)
	if answer.Err != nil {
		return answer.Err
	}
	if s.holding[t.client] == t { // the trial goes on with another attempt
		delete(s.holding, t.client)
		t.end(fmt.Errorf("this attempt of trial %d has %w", t.number, ErrEnded))
	}
	return nil
}

// failure describes an error in the records.
func failure(reason string, err error) *messaging.Failure {
	text := err.Error()
	return &messaging.Failure{Reason: reason, Message: text[:min(len(text), messaging.MaxMessage)]}
}

// enqueue implements leader.
func (s *inProcess) enqueue(point map[string]any) error {
	return s.insert(engine.Enqueue{At: time.Now(), Point: point})
}

// add implements leader.
func (s *inProcess) add(found measured, point map[string]any) error {
	defer s.progress.tell(s.standing)
	return s.insert(engine.Add{At: time.Now(), Point: point, Values: found.values, Metrics: found.metrics})
}

// insert applies an event about a point.
func (s *inProcess) insert(event engine.Event) error {
	var failed error
	kept := s.do(func() {
		if failed = s.usable(); failed == nil {
			failed = s.step(event).Err
		}
	})
	if failed != nil {
		return failed
	}
	return kept
}

// standing returns how the study is doing.
func (s *inProcess) standing() (Progress, error) {
	var p Progress
	err := s.do(func() {
		p = Progress{Ended: s.engine.Status().Counts.Ended(), Trials: s.engine.Spec().Definition.Spec.Budget.MaxTrials}
		if best, ok := s.engine.Best(); ok {
			p.Best = s.result(&best)
		}
	})
	return p, err
}
