package coordinator

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// endless is an optimiser that answers only when its context ends, with what it has.
type endless struct{}

func (endless) Suggest(ctx context.Context, _ *optimizer.Problem, state optimizer.State, _ int, _ *rand.Rand) ([]optimizer.Suggestion, optimizer.State, error) {
	<-ctx.Done()
	return []optimizer.Suggestion{{}}, state, nil
}

// An optimiser that would work forever must answer within a bounded time.
func TestSuggestionsTakeBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		got, _, err := suggest(t.Context(), endless{}, 1, &engine.Ask{N: 1})
		if err != nil || len(got) != 1 {
			t.Errorf("%d suggestions and %v, want what the optimiser had", len(got), err)
		}
		if took := time.Since(began); took != suggestTime {
			t.Errorf("answered after %v, want %v", took, suggestTime)
		}
	})
}
