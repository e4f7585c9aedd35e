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
	trial *Trial
	err   error
	done  chan struct{} // closed when one of them is set
}

// Ask returns a trial to evaluate. Tell how it has ended. Ask waits while Options.Parallel trials
// are open. The error wraps ErrEnded if the study has ended, or is the cause of ctx's end.
func (s *Study) Ask(ctx context.Context) (*Trial, error) {
	s.mu.Lock()
	if err := s.usable(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	client, a := s.client(), &ask{done: make(chan struct{})}
	s.waiting[client] = a
	s.step(engine.Seek{At: time.Now(), Client: client, Want: 1})
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.trial, a.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[client] == a {
		delete(s.waiting, client)
		s.step(engine.Seek{At: time.Now(), Client: client})
	} else if a.trial != nil { // it came at the last moment
		_ = s.told(a.trial, 0, ErrInterrupted)
	}
	return nil, context.Cause(ctx)
}

// usable returns why no trial can be asked for; nil if one can.
func (s *Study) usable() error {
	if s.stopped != nil {
		return s.stopped
	}
	if status := s.engine.Status(); status.State.Terminal() {
		return fmt.Errorf("the study has %w: %s", ErrEnded, status.Reason)
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
	trial := &Trial{study: s, client: client, number: t.Number, attempt: attempt.Number, at: Point{s.space, t.Point}, over: make(chan struct{})}
	s.holding[client] = trial
	a := s.waiting[client]
	delete(s.waiting, client)
	a.trial = trial
	close(a.done)
}

// retire notes that a trial has ended.
func (s *Study) retire(t *record.Trial) {
	if s.progress != nil {
		s.ended = append(s.ended, *t)
	}
	if a := t.Last(); a != nil {
		if h := s.holding[a.Worker]; h != nil && h.number == t.Number {
			h.end(fmt.Errorf("trial %d has %w", t.Number, ErrEnded))
			delete(s.holding, a.Worker)
		}
	}
}

// release ends all calls that wait for a trial.
func (s *Study) release(why error) {
	for client, a := range s.waiting {
		a.err = why
		if why == ErrEnded { //nolint:errorlint // the sentinel itself gets the reason
			a.err = s.usable()
		}
		close(a.done)
		delete(s.waiting, client)
	}
}

// Tell ends a trial of Ask with the objective's value, or with an error as an objective of Run
// returns it. The value is ignored if the error is not nil. When Tell returns nil, the result is
// in the state's file. Telling a trial again that has ended is an error that wraps ErrEnded.
func (s *Study) Tell(t *Trial, value float64, err error) error {
	s.mu.Lock()
	failed := s.told(t, value, err)
	s.mu.Unlock()
	s.report()
	return failed
}

// told applies how a trial has ended. s.mu MUST be held.
func (s *Study) told(t *Trial, value float64, err error) error {
	if s.stopped != nil {
		return s.stopped
	}
	if s.holding[t.client] != t {
		return fmt.Errorf("trial %d has %w", t.number, ErrEnded)
	}
	event := engine.Told{At: time.Now(), Client: t.client, Trial: t.number, Attempt: t.attempt}
	switch {
	case err == nil:
		event.Outcome, event.Values = messaging.OutcomeCompleted, study.Values{value}
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

// Enqueue has a point evaluated before the next suggestion. It counts towards Options.Trials. All
// parameters that are active at the point must be given.
func (s *Study) Enqueue(values ...Assignment) error {
	return s.insert(values, func(point study.Point) engine.Event {
		return engine.Enqueue{At: time.Now(), Point: point}
	})
}

// Add adds a trial that was evaluated elsewhere, with its value, for the optimiser to learn from.
// It does not count towards Options.Trials. All parameters that are active at the point must be
// given.
func (s *Study) Add(value float64, values ...Assignment) error {
	defer s.report()
	return s.insert(values, func(point study.Point) engine.Event {
		return engine.Add{At: time.Now(), Point: point, Values: study.Values{value}}
	})
}

// insert applies an event about a point.
func (s *Study) insert(values []Assignment, event func(study.Point) engine.Event) error {
	point, err := s.space.raw(values)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.step(event(point)).Err
}

// report calls Progress for the trials that have ended, unless somebody does.
func (s *Study) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calling {
		return
	}
	s.calling = true
	for len(s.ended) > 0 {
		t := s.ended[0]
		s.ended = s.ended[1:]
		status := s.engine.Status()
		p := Progress{Trial: s.result(&t), Ended: status.Counts.Ended(), Trials: s.engine.Spec().Definition.Spec.Budget.MaxTrials}
		if best, ok := s.engine.Best(); ok {
			p.Best = s.result(&best)
		}
		s.mu.Unlock()
		s.progress(p)
		s.mu.Lock()
	}
	s.calling = false
}
