package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// endless is an optimiser that answers only when its context ends, with what it has.
type endless struct{}

func (endless) Suggest(ctx context.Context, _ *optimizer.Problem, state optimizer.State, _ int, _ *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	<-ctx.Done()
	return []optimizer.Suggestion{{}}, state, nil
}

// blocked is an optimiser that answers only when its gate is opened.
type blocked struct {
	gate   gate
	called chan struct{}
}

func (b blocked) Suggest(ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	select {
	case b.called <- struct{}{}:
	default:
	}
	<-b.gate
	return sampler{}.Suggest(ctx, p, state, n, rng)
}

// A study whose optimiser fails, and whose fallbacks take forever, does not hold up the
// others.
func TestSlowFallbacksHoldUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	slow := blocked{gate: make(gate), called: make(chan struct{}, 1)}
	c := r.leader(func(o *Options) {
		o.NewFallback = func() optimizer.Optimizer { return slow }
		o.NewOptimizer = func(a study.Algorithm) (optimizer.Optimizer, error) {
			if a.Name == "broken" {
				return failing{}, nil
			}
			return sampler{}, nil
		}
	})
	r.hand("w", 4, nil)
	first := r.create(c, "slow", 5, 1, func(s *study.Spec) { s.Algorithm.Name = "broken" })
	select {
	case <-slow.called:
	case <-r.ctx().Done():
		t.Fatal("no fallback was asked for")
	}
	second := r.create(c, "beside", 40, 4)
	r.ends(second.ID)
	r.verify(second.ID, 40, 40)
	close(slow.gate)
	r.ends(first.ID)
	for _, trial := range r.verify(first.ID, 5, 5).Trials {
		if trial.Source != optimizer.SourceFallback {
			t.Errorf("trial %d is of source %s, want fallback", trial.Number, trial.Source)
		}
	}
}

// failing is an optimiser that always fails.
type failing struct{}

func (failing) Suggest(context.Context, *optimizer.Problem, optimizer.State, int, *rand.Rand) ([]optimizer.Suggestion, optimizer.State,
	error) {
	return nil, nil, errors.New("singular matrix")
}

// An optimiser that would work forever must answer within a bounded time.
func TestSuggestionsTakeBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		got := drive.Suggest(t.Context(), endless{}, 1, &engine.Ask{N: 1, Problem: &optimizer.Problem{}})
		if got.Err != nil || len(got.Suggestions) != 1 {
			t.Errorf("%d suggestions and %v, want what the optimiser had", len(got.Suggestions), got.Err)
		}
		if !got.Cut {
			t.Error("the answer does not say that its time was over")
		}
		if took := time.Since(began); took != drive.SuggestTime {
			t.Errorf("answered after %v, want %v", took, drive.SuggestTime)
		}
	})
}
