// Package suggest calls the optimisers outside the leader's loop: for suggestions, for what takes
// their place while an optimiser is slow, and for recommendations.
package suggest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
	"github.com/fantasia-hpo/fantasia/coordinator/spans"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Requests runs the optimisers, and what suggests fallbacks, outside the loop: a few of each
// at a time, with at most one request of each in flight per study. Safe for concurrent use.
type Requests struct {
	studies *studies.Studies // used in the loop only
	spans   *spans.Spans
	metrics *metrics.Metrics
	post    inbox.Post
	spawn   func(func()) // starts a goroutine of the term
	slots   chan struct{}
	// fallbackSlots are those of fallbacks, which must not wait for slow optimisers.
	fallbackSlots chan struct{}
	// judgeSlots bound how many trials are judged at a time.
	judgeSlots chan struct{}
}

// NewRequests returns the requests of a term, whose goroutines spawn starts.
func NewRequests(s *studies.Studies, x *spans.Spans, m *metrics.Metrics, post inbox.Post, spawn func(func())) *Requests {
	return &Requests{
		studies: s, spans: x, metrics: m, post: post, spawn: spawn,
		slots:         make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
		fallbackSlots: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))),
		judgeSlots:    make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}
}

// Ask sends a request to a study's optimiser and posts the answer to the loop.
// It cancels the request when the study ends. The engine gets an answer even
// then, since an update may resume the study. Only the loop calls it.
func (a *Requests) Ask(ctx context.Context, r *studies.Study, ask *engine.Ask) {
	asking, stop := context.WithCancel(ctx)
	r.Asking = stop
	if r.Status.State.Terminal() {
		stop()
	}
	id, opt, algorithm := r.Spec.ID, r.Optimizer, r.Spec.Definition.Spec.Algorithm
	asking, span := a.spans.Refit(asking, &r.Spec, ask, r.Fitted, r.Engine.Trial)
	r.Fitted = ask.From
	a.spawn(func() {
		defer stop()
		answer := a.ask(asking, opt, algorithm.Name, algorithm.Seed, ask)
		spans.Refitted(span, answer.Err)
		a.answer(ctx, id, answer)
	})
}

// FallBack asks for a study's fallbacks and posts the answer to the loop. They need no
// model, but a constrained space can make them slow. Only the loop calls it.
func (a *Requests) FallBack(ctx context.Context, r *studies.Study, ask *engine.Ask) {
	asking, stop := context.WithCancel(ctx)
	r.FallingBack = stop
	id, o, seed := r.Spec.ID, r.Fallback, r.Spec.Definition.Spec.Algorithm.Seed
	a.spawn(func() {
		defer stop()
		answer, _ := inSlot(asking, a.fallbackSlots, o, seed, ask)
		a.answer(ctx, id, answer)
	})
}

// Judge has a model decide whether a trial goes on, and posts the answer to the loop. Only the loop calls it.
func (a *Requests) Judge(ctx context.Context, id string, question *engine.Judge) {
	a.spawn(func() {
		answer := engine.Judged{Judge: question}
		if leave, err := enter(ctx, a.judgeSlots); err != nil {
			answer.Err = err
		} else {
			answer = drive.Judge(ctx, question)
			leave()
		}
		a.step(ctx, id, func(at time.Time) engine.Event { answer.At = at; return answer })
	})
}

// answer posts an answer to the loop, which gives it to the study's engine.
func (a *Requests) answer(ctx context.Context, id string, answer engine.Suggested) {
	a.step(ctx, id, func(at time.Time) engine.Event { answer.At = at; return answer })
}

// step has the loop give a study's engine an event, with the time at which it comes.
func (a *Requests) step(ctx context.Context, id string, event func(at time.Time) engine.Event) {
	a.post(ctx, func(_ context.Context, now time.Time) error {
		a.studies.StepIn(id, event(now))
		return nil
	})
}

// enter waits for a slot, which the caller gives back with leave. The error is why ctx has ended.
func enter(ctx context.Context, slots chan struct{}) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inSlot waits for a slot, calls an optimiser and returns how long that took: 0 if ctx
// ended before there was a slot.
func inSlot(ctx context.Context, slots chan struct{}, o optimizer.Optimizer, seed uint64, ask *engine.Ask) (
	answer engine.Suggested, took time.Duration) {
	answer.Ask = ask
	leave, err := enter(ctx, slots)
	if err != nil {
		answer.Err = err
		return answer, 0
	}
	defer leave()
	start := time.Now()
	answer = drive.Suggest(ctx, o, seed, ask)
	return answer, max(1, time.Since(start))
}

// ask waits for a slot and calls the optimiser.
func (a *Requests) ask(ctx context.Context, o optimizer.Optimizer, name string, seed uint64, ask *engine.Ask) engine.Suggested {
	answer, took := inSlot(ctx, a.slots, o, seed, ask)
	if took == 0 { // no slot
		return answer
	}
	failed := answer.Err != nil && !errors.Is(answer.Err, optimizer.ErrExhausted) && ctx.Err() == nil
	a.metrics.Suggested(ctx, name, took, failed)
	return answer
}
