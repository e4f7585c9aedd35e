package coordinator

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// asks runs the optimisers, and what suggests fallbacks, outside the loop: a few of each
// at a time, with at most one request of each in flight per study. Safe for concurrent use.
type asks struct {
	studies *studies // used in the loop only
	traces  *traces
	metrics *metrics
	post    inbox.Post
	spawn   func(func()) // starts a goroutine of the term
	slots   chan struct{}
	// falling are the slots of fallbacks, which must not wait for slow optimisers.
	falling chan struct{}
}

func newAsks(studies *studies, traces *traces, post inbox.Post, spawn func(func())) *asks {
	return &asks{
		studies: studies, traces: traces, metrics: traces.metrics, post: post, spawn: spawn,
		slots:   make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
		falling: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))),
	}
}

// start sends a request to a study's optimiser and posts the answer to the loop.
// It cancels the request when the study ends. The engine gets an answer even
// then, since an update may resume the study. Only the loop calls start.
func (a *asks) start(ctx context.Context, r *run, ask *engine.Ask) {
	asking, stop := context.WithCancel(ctx)
	r.asking = stop
	if r.status.State.Terminal() {
		stop()
	}
	id, opt, algorithm := r.spec.ID, r.optimizer, r.spec.Definition.Spec.Algorithm
	asking, span := a.traces.refit(asking, r, ask)
	a.spawn(func() {
		defer stop()
		answer := a.ask(asking, opt, algorithm.Name, algorithm.Seed, ask)
		refitted(span, answer.Err)
		a.post(ctx, func(_ context.Context, now time.Time) error {
			answer.At = now
			a.studies.StepIn(id, answer)
			return nil
		})
	})
}

// fallBack asks for a study's fallbacks and posts the answer to the loop. They need no
// model, but a constrained space can make them slow. Only the loop calls it.
func (a *asks) fallBack(ctx context.Context, r *run, ask *engine.Ask) {
	asking, stop := context.WithCancel(ctx)
	r.fallingBack = stop
	id, o, seed := r.spec.ID, r.fallback, r.spec.Definition.Spec.Algorithm.Seed
	a.spawn(func() {
		defer stop()
		answer, _ := inSlot(asking, a.falling, o, seed, ask)
		a.post(ctx, func(_ context.Context, now time.Time) error {
			answer.At = now
			a.studies.StepIn(id, answer)
			return nil
		})
	})
}

// inSlot waits for a slot, calls an optimiser and returns how long that took: 0 if ctx
// ended before there was a slot.
func inSlot(ctx context.Context, slots chan struct{}, o optimizer.Optimizer, seed uint64, ask *engine.Ask) (answer engine.Suggested, took time.Duration) {
	answer.Ask = ask
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		answer.Err = context.Cause(ctx)
		return answer, 0
	}
	start := time.Now()
	answer = drive.Suggest(ctx, o, seed, ask)
	return answer, max(1, time.Since(start))
}

// ask waits for a slot and calls the optimiser.
func (a *asks) ask(ctx context.Context, o optimizer.Optimizer, name string, seed uint64, ask *engine.Ask) engine.Suggested {
	answer, took := inSlot(ctx, a.slots, o, seed, ask)
	if took == 0 { // no slot
		return answer
	}
	attrs := metric.WithAttributeSet(attribute.NewSet(telemetry.AttrAlgorithm.String(name)))
	a.metrics.suggest.Record(ctx, took.Seconds(), attrs)
	failed := int64(0) // added even when it is 0, so that the counter exists before the first failure
	if answer.Err != nil && !errors.Is(answer.Err, optimizer.ErrExhausted) && ctx.Err() == nil {
		failed = 1
	}
	a.metrics.suggestErrors.Add(ctx, failed, attrs)
	return answer
}
