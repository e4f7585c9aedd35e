package optimizertest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// RunSeveral is Run for optimisers that take several objectives: it runs the same tests
// with problems of two and of five of them.
func RunSeveral(t *testing.T, create func() optimizer.Optimizer) {
	for _, objectives := range []int{2, 5} {
		t.Run(fmt.Sprintf("%d objectives", objectives), func(t *testing.T) {
			Run(t, func() optimizer.Optimizer { return &several{create(), objectives} })
		})
	}
}

// several gives the problems of an optimiser more objectives. The first is the problem's
// own, the second is against it, and the others are distances to some places. The second is known
// early of half of the observations that did not complete.
type several struct {
	optimizer.Optimizer
	objectives int
}

// Suggest implements optimizer.Optimizer.
func (s *several) Suggest(
	ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand,
) ([]optimizer.Suggestion, optimizer.State, error) {
	more := *p
	for k := range s.objectives {
		objective := study.Objective{Metric: fmt.Sprintf("f%d", k+1), Direction: p.Direction, Early: k == 1}
		more.Objectives = append(more.Objectives, objective)
	}
	encoding := optimizer.NewEncoding(p.Space)
	more.Observations = nil
	for i, o := range p.Observations {
		if len(o.Values) > 0 {
			o.Values = s.values(o.Values.First(), encoding.Encode(o.At()))
		}
		if o.Outcome != optimizer.OutcomeCompleted && i%2 == 0 {
			o.Early = study.Values(slices.Repeat([]float64{math.NaN()}, s.objectives))
			o.Early[1] = float64(i % 7)
		}
		more.Observations = append(more.Observations, o)
	}
	return s.Optimizer.Suggest(ctx, &more, state, n, rng)
}

func (s *several) values(first float64, x []float64) study.Values {
	values := study.Values{first, -first}
	for k := 2; k < s.objectives; k++ {
		var distance float64
		for _, u := range x {
			to := float64(k) / float64(s.objectives)
			distance += (u - to) * (u - to)
		}
		values = append(values, distance)
	}
	return values
}

// RunLimited is Run for optimisers that take limits: it runs the same tests with problems of
// two limits, and with two objectives and a limit that no point is within.
func RunLimited(t *testing.T, create func() optimizer.Optimizer) {
	for _, c := range []struct {
		name    string
		create  func() optimizer.Optimizer
		largest float64
	}{
		{"two limits", create, 0.7},
		{"two objectives and no point within", func() optimizer.Optimizer { return &several{create(), 2} }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			Run(t, func() optimizer.Optimizer { return &limited{c.create(), c.largest} })
		})
	}
}

// limited gives an optimiser's problems two limits: the mean of all coordinates is at most
// largest, and the first is at least 0.2. The latter is not known of every fifth observation, and
// is known early of half of those that did not complete.
type limited struct {
	optimizer.Optimizer
	largest float64
}

// Suggest implements optimizer.Optimizer.
func (s *limited) Suggest(
	ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand,
) ([]optimizer.Suggestion, optimizer.State, error) {
	more := *p
	least := 0.2
	more.Limits = []study.Limit{{Metric: "mean", Max: &s.largest}, {Metric: "first", Min: &least, Early: true}}
	encoding := optimizer.NewEncoding(p.Space)
	more.Observations = nil
	for i, o := range p.Observations {
		mean, first := 0.0, math.NaN()
		for k, u := range encoding.Encode(o.At()) {
			mean += u / float64(encoding.Dim())
			if k == 0 && i%5 != 4 {
				first = u
			}
		}
		if o.Outcome != optimizer.OutcomeCompleted {
			mean = math.NaN()
		}
		if o.Outcome == optimizer.OutcomeCompleted || i%2 == 0 {
			o.Excess = []float64{more.Limits[0].Excess(mean), more.Limits[1].Excess(first)}
		}
		more.Observations = append(more.Observations, o)
	}
	return s.Optimizer.Suggest(ctx, &more, state, n, rng)
}
