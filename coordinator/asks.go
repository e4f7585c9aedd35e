package coordinator

import (
	"context"
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

// asks runs the optimisers off the loop, a few at a time: at most one for each
// study is under way. Safe for concurrent use.
type asks struct {
	l     *leader
	slots chan struct{}
}

func newAsks(l *leader) *asks {
	return &asks{l: l, slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// start asks a study's optimiser and feeds the answer to the loop.
func (a *asks) start(ctx context.Context, r *run, ask *engine.Ask) {
	id, opt, algorithm := r.spec.ID, r.optimizer, r.spec.Study.Spec.Algorithm
	a.l.workers.Go(func() {
		select {
		case a.slots <- struct{}{}:
			defer func() { <-a.slots }()
		case <-ctx.Done():
			return
		}
		start := time.Now()
		suggestions, state, err := suggest(ctx, opt, algorithm.Seed, ask)
		if ctx.Err() != nil {
			return
		}
		a.l.c.metrics.suggest.Record(ctx, time.Since(start).Seconds(),
			metric.WithAttributeSet(attribute.NewSet(telemetry.AttrAlgorithm.String(algorithm.Name))))
		a.l.send(ctx, func(l *leader, now time.Time) error {
			if l == nil {
				return nil
			}
			if r := l.runs[id]; r != nil && r.engine != nil {
				l.step(r, engine.Suggested{At: now, Ask: ask, Suggestions: suggestions, State: state, Err: err})
			}
			return nil
		})
	})
}

// suggest calls an optimiser; a panic there fails the request, not the process.
func suggest(ctx context.Context, o optimizer.Optimizer, seed uint64, ask *engine.Ask) (s []optimizer.Suggestion, state optimizer.State, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, state, err = nil, nil, fmt.Errorf("the optimiser panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return o.Suggest(ctx, ask.Problem, ask.State, ask.N, optimizer.NewRand(seed, ask.Request))
}
