package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// evaluator is one slot's.
type evaluator struct {
	sidecar *Sidecar
	slot    int
	// last is the attempt whose ending was returned last.
	last *attempt

	// reserved says that the slot gets an attempt for a client that waits; the
	// sidecar's lock guards it.
	reserved bool
}

var _ evaluation.Gate = (*evaluator)(nil)

// Accept accepts everything: what a study's command says is not run here.
func (e *evaluator) Accept(*messaging.Assignment) error { return nil }

// settle notes that the last ending is on disk.
func (e *evaluator) settle() {
	if e.last != nil {
		close(e.last.durable)
		e.last = nil
	}
}

// release gives the reservation up. The caller holds the lock.
func (e *evaluator) release() {
	if e.reserved {
		e.reserved = false
		e.sidecar.reserved--
		e.sidecar.broadcast()
	}
}

// Await waits until a client waits for whom no other slot fetches.
func (e *evaluator) Await(ctx context.Context) (context.Context, func(), error) {
	e.settle()
	s := e.sidecar
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		e.release() // of a fetch that brought nothing
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

// watch gives the reservation up when clients have gone, until ctx ends.
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

// wait waits for a change or a time (zero: for ever); false where ctx ended.
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

// errSilent says that nobody cares for an attempt.
var errSilent = errors.New("no word from the training code")

// Evaluate has a client evaluate the attempt.
func (e *evaluator) Evaluate(ctx context.Context, job evaluation.Job) evaluation.Ending {
	e.settle()
	s := e.sidecar
	a, err := newAttempt(job)
	if err != nil {
		return evaluation.Failed(messaging.ReasonInvalid, err.Error())
	}
	s.mu.Lock()
	e.release() // what was reserved is here
	s.open[a.id] = a
	s.offered = append(s.offered, a)
	s.broadcast()
	s.mu.Unlock()
	e.last = a
	return s.conclude(a, s.otherwise(ctx, a))
}

// otherwise waits for the attempt's end and returns the ending that it has where
// its client did not end it; nil where it did.
func (s *Sidecar) otherwise(ctx context.Context, a *attempt) *evaluation.Ending {
	switch cause := s.attend(ctx, a); {
	case cause == nil:
		return nil
	case errors.Is(cause, errSilent):
		e := s.silent(a)
		return &e
	default:
		s.stop(a, cause)
		e := evaluation.StopEnding(cause)
		return &e
	}
}

// attend waits until the client has ended the attempt (nil), ctx has ended, or
// nobody cares for it.
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

// deadline is when nobody cares for the attempt any more, unless somebody is
// heard before; zero for never.
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

// silent is the ending of an attempt that nobody cares for. One that a client
// had taken has failed, as the one of a program that died; one that was never
// taken is handed back.
func (s *Sidecar) silent(a *attempt) evaluation.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.client == nil {
		return ended(messaging.OutcomeHandedBack, messaging.ReasonClient, "the training code that had asked for a trial did not take it")
	}
	return evaluation.Failed(messaging.ReasonClient, fmt.Sprintf("the training code has said nothing for %s", s.options.ClientTimeout))
}

// stop tells the client to stop and gives it the study's grace to end the
// attempt, where its answer can count.
func (s *Sidecar) stop(a *attempt, cause error) {
	s.mu.Lock()
	a.stop = cause
	taken := a.client != nil
	s.mu.Unlock()
	if !taken || errors.Is(cause, evaluation.ErrCancelled) {
		return
	}
	grace := time.Duration(a.job.Assignment.Run.Grace)
	if grace == 0 {
		grace = time.Duration(study.DefaultGrace)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-a.ended:
	case <-timer.C:
	case <-a.job.Kill:
	case <-s.gone:
	}
}

// Close does nothing but note that the last ending is on disk.
func (e *evaluator) Close(context.Context) error {
	e.settle()
	return nil
}
