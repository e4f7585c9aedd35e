package inprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// ask is a call of Ask that waits.
type ask struct {
	client string
	held   *library.Evaluation
	err    error
	due    int64         // of the journal, when one of them was set
	done   chan struct{} // closed then
}

// Ask implements library.Binding.
func (s *Study) Ask(ctx context.Context) (*library.Evaluation, error) {
	var a *ask
	var err error
	s.locked(func() { a, err = s.seek() })
	if err != nil {
		return nil, err
	}
	return s.await(ctx, a)
}

// seek asks the engine for a trial. s.mu MUST be held.
func (s *Study) seek() (*ask, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	a := &ask{client: s.client(), done: make(chan struct{})}
	s.waiting[a.client] = a
	s.step(engine.Seek{At: time.Now(), Client: a.client, Want: 1})
	return a, nil
}

// await waits for the trial.
func (s *Study) await(ctx context.Context, a *ask) (*library.Evaluation, error) {
	select {
	case <-a.done:
		if err := s.durable(a.due); err != nil {
			return nil, err
		}
		return a.held, a.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[a.client] == a {
		delete(s.waiting, a.client)
		s.step(engine.Seek{At: time.Now(), Client: a.client})
	} else if a.held != nil { // it came at the last moment
		_ = s.told(a.held, library.Measured{}, library.ErrInterrupted)
	}
	return nil, context.Cause(ctx)
}

// Turn implements library.Binding. If a suggestion is ready, the result and the next trial share an fsync; else the fsync
// goes on while the optimiser works.
func (s *Study) Turn(ctx context.Context, t *library.Evaluation, found library.Measured, err error) (*library.Evaluation, error) {
	var next *ask
	var failed error
	kept := s.do(func() {
		if failed = s.told(t, found, err); failed == nil || errors.Is(failed, library.ErrEnded) {
			next, failed = s.seek()
		}
	})
	s.progress.Tell(s.standing)
	if failed != nil {
		return nil, failed
	}
	if kept != nil {
		return nil, kept
	}
	return s.await(ctx, next)
}

// usable returns why no trial can be asked for; nil if one can.
func (s *Study) usable() error {
	if s.stopped != nil {
		return s.stopped
	}
	if status := s.engine.Status(); status.State.Terminal() {
		return fmt.Errorf("the study has %w: %s", library.ErrEnded, status.Reason)
	}
	return nil
}

// handOut gives a trial to the call that waits for it, if one does.
func (s *Study) handOut(t *record.Trial) {
	attempt := t.Last()
	if t.State != study.TrialRunning || attempt == nil || s.waiting[attempt.Worker] == nil {
		return
	}
	client := attempt.Worker
	held := library.NewEvaluation(client, t.Number, attempt.Number, t.Point)
	s.holding[client] = held
	a := s.waiting[client]
	delete(s.waiting, client)
	a.held, a.due = held, s.journal.Due()
	close(a.done)
}

// retire notes that a trial has ended.
func (s *Study) retire(t *record.Trial) {
	s.progress.Add(s.result(t))
	if a := t.Last(); a != nil {
		if h := s.holding[a.Worker]; h != nil && h.Number == t.Number {
			h.End(fmt.Errorf("trial %d has %w", t.Number, library.ErrEnded))
			delete(s.holding, a.Worker)
		}
	}
}

// release ends all calls that wait for a trial.
func (s *Study) release(why error) {
	for client, a := range s.waiting {
		a.err = why
		if why == library.ErrEnded { //nolint:errorlint // the sentinel itself gets the reason
			a.err = s.usable()
		}
		a.due = s.journal.Due()
		close(a.done)
		delete(s.waiting, client)
	}
}

// Tell implements library.Binding.
func (s *Study) Tell(t *library.Evaluation, found library.Measured, err error) error {
	var failed error
	kept := s.do(func() { failed = s.told(t, found, err) })
	s.progress.Tell(s.standing)
	return cmp.Or(failed, kept)
}

// told applies how a trial has ended. s.mu MUST be held.
func (s *Study) told(t *library.Evaluation, found library.Measured, err error) error {
	if s.stopped != nil {
		return s.stopped
	}
	if s.holding[t.Client] != t {
		return fmt.Errorf("trial %d has %w", t.Number, library.ErrEnded)
	}
	event := engine.Told{At: time.Now(), Client: t.Client, Trial: t.Number, Attempt: t.Attempt}
	switch {
	case err == nil:
		event.Outcome, event.Values, event.Metrics = messaging.OutcomeCompleted, found.Values, found.Metrics
	case errors.Is(err, library.ErrStopped):
		event.Outcome = messaging.OutcomePruned
	case errors.Is(err, library.ErrInfeasible):
		event.Outcome, event.Failure = messaging.OutcomeInfeasible, library.Failure(messaging.ReasonInfeasible, err)
	case errors.Is(err, library.ErrInterrupted):
		event.Outcome, event.Failure = messaging.OutcomeHandedBack, library.Failure(messaging.ReasonLeaving, err)
	default:
		event.Outcome, event.Failure = messaging.OutcomeFailed, library.Failure(messaging.ReasonReported, err)
	}
	answer := s.step(event)
	if answer.Err != nil {
		return answer.Err
	}
	if s.holding[t.Client] == t { // the trial goes on with another attempt
		delete(s.holding, t.Client)
		t.End(fmt.Errorf("this attempt of trial %d has %w", t.Number, library.ErrEnded))
	}
	return nil
}

// Enqueue implements library.Binding.
func (s *Study) Enqueue(point map[string]any) error {
	return s.insert(engine.Enqueue{At: time.Now(), Point: point})
}

// Continue implements library.Binding.
func (s *Study) Continue(trial int) error {
	if trial < 1 {
		return fmt.Errorf("%w: there is no trial %d; want the number of a trial that was stopped early", study.ErrInvalid, trial)
	}
	err := s.insertIf(func() error { return s.stopped }, engine.Enqueue{At: time.Now(), Continues: trial}) // an ended study may go on for it
	if errors.Is(err, engine.ErrRefused) || errors.Is(err, engine.ErrNoTrial) {
		err = fmt.Errorf("%w: %w", study.ErrInvalid, err)
	}
	return err
}

// Add implements library.Binding.
func (s *Study) Add(found library.Measured, point map[string]any) error {
	defer s.progress.Tell(s.standing)
	return s.insert(engine.Add{At: time.Now(), Point: point, Values: found.Values, Metrics: found.Metrics})
}

// insert applies an event about a point.
func (s *Study) insert(event engine.Event) error { return s.insertIf(s.usable, event) }

// insertIf is insert unless an error speaks against it. s.mu is held for that.
func (s *Study) insertIf(against func() error, event engine.Event) error {
	var failed error
	kept := s.do(func() {
		if failed = against(); failed == nil {
			failed = s.step(event).Err
		}
	})
	return cmp.Or(failed, kept)
}

// standing returns how the study is doing.
func (s *Study) standing() (library.Progress, error) {
	var p library.Progress
	err := s.do(func() {
		p = library.Progress{Ended: s.engine.Status().Counts.Ended(), Trials: s.engine.Spec().Definition.Spec.Budget.MaxTrials}
		if best, ok := s.engine.Best(); ok {
			p.Best = s.result(&best)
		}
	})
	return p, err
}
