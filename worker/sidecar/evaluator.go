package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// evaluator is the evaluator of one slot.
type evaluator struct {
	sidecar *Sidecar
	slot    int
	// last is the attempt whose ending was returned last.
	last *attempt

	// reserved means that the slot fetches an attempt for a waiting client; the
	// sidecar's lock guards it.
	reserved bool
}

var _ evaluation.Gate = (*evaluator)(nil)

// Accept accepts all assignments except Jobs: a study's command is not run here.
func (e *evaluator) Accept(a *messaging.Assignment) error {
	if a.Run.Job != nil {
		return evaluation.ErrJob
	}
	return nil
}

// confirmDurable records that the last ending is on disk.
func (e *evaluator) confirmDurable() {
	if e.last != nil {
		close(e.last.durable)
		e.last = nil
	}
}

// release cancels the reservation. The caller MUST hold the lock.
func (e *evaluator) release() {
	if e.reserved {
		e.reserved = false
		e.sidecar.reserved--
		e.sidecar.broadcast()
	}
}

// Await waits until a client waits for which no other slot fetches.
func (e *evaluator) Await(ctx context.Context) (context.Context, func(), error) {
	e.confirmDurable()
	s := e.sidecar
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		e.release() // if a fetch brought nothing
		changed := s.changed
		if !s.leaving && s.unserved() > 0 {
			e.reserved = true
			s.reserved++
		}
		reserved := e.reserved
		s.mu.Unlock()
		if reserved {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	wanted, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { e.watch(wanted, cancel) })
	return wanted, func() { cancel(); watching.Wait() }, nil
}

// watch cancels the reservation when clients have gone, until ctx ends.
func (e *evaluator) watch(ctx context.Context, unwanted func()) {
	s := e.sidecar
	for {
		s.mu.Lock()
		if s.leaving || s.unserved() < 0 {
			unwanted()
			e.release()
			s.mu.Unlock()
			return
		}
		changed, gone := s.changed, s.nextGone()
		s.mu.Unlock()
		if !wait(ctx, changed, gone) {
			return
		}
	}
}

// wait waits for a change or a time (zero: no limit); it returns false if ctx ended.
func wait(ctx context.Context, changed <-chan struct{}, at time.Time) bool {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed:
	case <-due:
	case <-ctx.Done():
		return false
	}
	return true
}

// errSilent means that no client works on an attempt.
var errSilent = errors.New("the training code is silent")

// Evaluate lets a client evaluate the attempt.
func (e *evaluator) Evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	e.confirmDurable()
	s := e.sidecar
	a, err := newAttempt(task, s.options.Checkpoints, s.options.Logger)
	if err != nil {
		return evaluation.Failed(messaging.ReasonInvalid, err.Error())
	}
	s.mu.Lock()
	e.release() // the reserved attempt has arrived
	s.open[a.id] = a
	s.offered = append(s.offered, a)
	s.broadcast()
	s.mu.Unlock()
	e.last = a
	return s.conclude(a, s.otherwise(ctx, a))
}

// otherwise waits for the attempt's end. It returns nil if the client ended the
// attempt, and otherwise the ending to use.
func (s *Sidecar) otherwise(ctx context.Context, a *attempt) *evaluation.Ending {
	switch cause := s.attend(ctx, a); {
	case cause == nil:
		return nil
	case errors.Is(cause, errSilent):
		return new(s.silent(a))
	default:
		s.stop(a, cause)
		return new(evaluation.StopEnding(cause))
	}
}

// attend waits until the client has ended the attempt (nil), ctx has ended, or no
// client works on it.
func (s *Sidecar) attend(ctx context.Context, a *attempt) error {
	for {
		deadline := s.deadline(a)
		if !deadline.IsZero() && !deadline.After(time.Now()) {
			return errSilent
		}
		if !wait(ctx, a.ended, deadline) {
			return evaluation.Stopped(ctx)
		}
		select {
		case <-a.ended:
			return nil
		default:
		}
	}
}

// deadline returns when the attempt counts as abandoned, unless a client is heard from
// before; zero for never.
func (s *Sidecar) deadline(a *attempt) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.client == nil:
		return a.offeredAt.Add(offerTimeout)
	case s.options.ClientTimeout == 0:
		return time.Time{}
	default:
		return a.heard.Add(s.options.ClientTimeout)
	}
}

// silent returns the ending of an abandoned attempt. If a client had taken it, it has
// failed, like that of a program that died; if not, it is handed back.
func (s *Sidecar) silent(a *attempt) evaluation.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.client == nil {
		return evaluation.Ending{Outcome: messaging.OutcomeHandedBack, Failure: &messaging.Failure{
			Reason: messaging.ReasonClient, Message: "the training code that had asked for a trial did not take it",
		}}
	}
	return evaluation.Failed(messaging.ReasonClient, fmt.Sprintf("the training code has said nothing for %s", s.options.ClientTimeout))
}

// stop tells the client to stop and gives it the study's grace to end the attempt, if
// its answer can count.
func (s *Sidecar) stop(a *attempt, cause error) {
	s.mu.Lock()
	a.stop = cause
	taken := a.client != nil
	s.mu.Unlock()
	if !taken || errors.Is(cause, evaluation.ErrCancelled) {
		return
	}
	select {
	case <-a.ended:
	case <-time.After(a.task.Assignment.Run.GracePeriod()):
	case <-a.task.Kill:
	case <-s.gone:
	}
}

// Close only records that the last ending is on disk.
func (e *evaluator) Close(context.Context) error {
	e.confirmDurable()
	return nil
}
