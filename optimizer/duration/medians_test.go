package duration_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// told returns what an optimiser is told of evaluations.
func told(list []duration.Observation) (all []optimizer.Observation) {
	for _, o := range list {
		outcome := optimizer.OutcomeCompleted
		if o.Censored {
			outcome = optimizer.OutcomePruned
		}
		all = append(all, optimizer.Observation{Point: o.Point, Seconds: o.Seconds, Outcome: outcome})
	}
	return all
}

// What was asked before does not change the medians of these observations.
func TestMediansFollowTheObservations(t *testing.T) {
	e, rng := encoding(t), rand.New(rand.NewPCG(1, 1))
	list := told(took(e, 40, rng))
	slower := slices.Clone(list)
	for i := range slower {
		slower[i].Seconds *= 3
	}
	stopped := slices.Clone(list)
	stopped[0].Outcome = optimizer.OutcomePruned
	at := e.Decode([]float64{0.5, 0.5})
	var kept duration.Medians
	for _, c := range [][]optimizer.Observation{list, list, slower, list[:20], stopped, list} {
		got, err := kept.Of(t.Context(), e, &optimizer.Problem{Observations: c, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		alone, err := new(duration.Medians).Of(t.Context(), e, &optimizer.Problem{Observations: c, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := got.At(at)[0], alone.At(at)[0]; a != b {
			t.Errorf("after other observations the estimate is %+v, alone %+v", a, b)
		}
	}
	m, err := kept.Of(t.Context(), e, &optimizer.Problem{Observations: list, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.At(at)[0].Median(), 10*math.E; math.Abs(math.Log(got/want)) > 0.1 {
		t.Errorf("in the middle an evaluation is expected to take %g s, want about %g", got, want)
	}
	if again, _ := kept.Of(t.Context(), e, &optimizer.Problem{Observations: list, Seed: 1}); again != m {
		t.Error("the same observations are fitted twice")
	}
	for i := range list {
		list[i].Seconds = 0 // not known
	}
	if _, err := kept.Of(t.Context(), e, &optimizer.Problem{Observations: list, Seed: 1}); !errors.Is(err, duration.ErrTooFew) {
		t.Errorf("without times the error is %v", err)
	}
}

func BenchmarkMedians(b *testing.B) {
	for _, dim := range []int{2, 8} {
		for _, n := range []int{30, 100, 250} {
			space := optimizertest.Cube(b, dim, 0, 1)
			e, rng := optimizer.NewEncoding(space), rand.New(rand.NewPCG(1, 1))
			list := make([]duration.Observation, n)
			for i := range list {
				x := make([]float64, dim)
				for k := range x {
					x[k] = rng.Float64()
				}
				list[i] = duration.Observation{Point: e.Decode(x), Seconds: 10 * math.Exp(2*x[0]+0.3*rng.NormFloat64())}
			}
			all := told(list)
			b.Run(fmt.Sprintf("whole/%d/%d", dim, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := duration.Fit(b.Context(), e, list, nil, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("medians/%d/%d", dim, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := new(duration.Medians).Of(b.Context(), e, &optimizer.Problem{Observations: all, Seed: 1}); err != nil {
						b.Fatal(err)
					}
				}
			})
			var kept duration.Medians
			b.Run(fmt.Sprintf("kept/%d/%d", dim, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := kept.Of(b.Context(), e, &optimizer.Problem{Observations: all, Seed: 1}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
