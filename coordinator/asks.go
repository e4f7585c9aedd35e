package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// asks runs the optimisers off the loop, a few at a time: at most one request
// for each study is under way. Safe for concurrent use.
type asks struct {
	studies *studies // in the loop alone
	traces  *traces
	metrics *metrics
	post    post
	spawn   func(func()) // starts a goroutine of the term
	slots   chan struct{}
}

func newAsks(studies *studies, traces *traces, post post, spawn func(func())) *asks {
	return &asks{
		studies: studies, traces: traces, metrics: traces.metrics, post: post, spawn: spawn,
		slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}
}

// start asks a study's optimiser and feeds the answer to the loop. The request
// ends early with the study; the engine is told even then, since the study may
// go on later. The loop calls it.
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
			a.studies.stepIn(id, answer)
			return nil
		})
	})
}

// ask waits for a slot and calls the optimiser.
func (a *asks) ask(ctx context.Context, o optimizer.Optimizer, name string, seed uint64, ask *engine.Ask) engine.Suggested {
	answer := engine.Suggested{Ask: ask}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		answer.Err = context.Cause(ctx)
		return answer
	}
	start := time.Now()
	answer.Suggestions, answer.State, answer.Err = suggest(ctx, o, seed, ask)
	attrs := metric.WithAttributeSet(attribute.NewSet(telemetry.AttrAlgorithm.String(name)))
	a.metrics.suggest.Record(ctx, time.Since(start).Seconds(), attrs)
	failed := int64(0) // counted as well: what is not there cannot grow
	if answer.Err != nil && !errors.Is(answer.Err, optimizer.ErrExhausted) && ctx.Err() == nil {
		failed = 1
	}
	a.metrics.suggestErrors.Add(ctx, failed, attrs)
	return answer
}

// suggestTime is how long an optimiser may take over a request, before it has to
// answer with what it has. Workers that wait meanwhile are served by fallbacks.
const suggestTime = 30 * time.Second

// suggest calls an optimiser; a panic there fails the request, not the process.
func suggest(ctx context.Context, o optimizer.Optimizer, seed uint64, ask *engine.Ask) (s []optimizer.Suggestion, state optimizer.State, err error) {
	defer caught(&err)
	ctx, stop := context.WithTimeout(ctx, suggestTime)
	defer stop()
	return o.Suggest(ctx, ask.Problem, ask.State, ask.N, optimizer.NewRand(seed, ask.Request))
}

// caught makes an error of a panic of the function that defers it.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the optimiser panicked: %v\n%s", p, debug.Stack())
	}
}
