package hebo

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
)

// robustness returns the standard deviation of the noise in HEBO's robust acquisition
// functions (Cowen-Rivers et al. 2022, section 4.2.1), given the variance of the evaluations'
// noise. The factor is that of HEBO's submission to the competition.
func robustness(noise float64) float64 { return math.Sqrt(2 * noise) }

// noisy is a single acquisition function with the noise of HEBO's robust acquisition. The
// noise is drawn anew at each evaluation, so the function cannot be climbed along its gradient.
// As in the paper, evolution searches it.
type noisy struct {
	s   *search
	sd  float64 // of the noise added to the mean
	rng *rand.Rand
}

// newNoisy prepares the function for a search.
func newNoisy(s *search) *noisy {
	return &noisy{s: s, sd: robustness(s.Main.Model.Noise()), rng: s.Request.Rand}
}

// value returns a draw of the function at a posterior from describe.
func (n *noisy) value(mean, variance, logP, prior float64) float64 {
	drawn := n.s.Criterion.Value(&n.s.Main.Known, mean+n.sd*n.rng.NormFloat64(), variance)
	return n.s.Chance.OfImprovement(drawn, logP) + prior
}

// objective sets the rows of dst to draws for the posteriors from describe; smaller is better.
func (n *noisy) objective(dst, from *mat.Dense) {
	rows, _ := from.Dims()
	for i := range rows {
		p := from.RawRowView(i)
		dst.Set(i, 0, -n.value(p[0], p[1], p[2], p[3]))
	}
}

// best searches for the greatest values and returns the last population as places that can
// be suggested, best first. When ctx ends, it returns the population reached by then.
func (n *noisy) best(ctx context.Context, e effort, initial *mat.Dense) ([]loop.Place, error) {
	population, err := n.s.evolve(ctx, nsga2.Problem{Objectives: 1, Score: n.objective}, e, initial, true)
	if population == nil {
		return nil, err
	}
	rows := indices.Sorted(len(population.Rank), func(a, b int) int { return cmp.Compare(population.F.At(a, 0), population.F.At(b, 0)) })
	return n.s.untaken(population, rows), nil
}

// next returns the next point: of the last population the best one that is left. Without a
// population it is the greatest of new draws at all places.
func (n *noisy) next() (best loop.Spot, ok bool) {
	s, greatest := n.s, math.Inf(-1)
	for i, place := range s.Places {
		if s.front > 0 && i == s.front {
			break
		}
		if s.Request.Sampler.TakenAt(place.X) {
			continue
		}
		if s.front > 0 {
			return loop.Spot{Place: place}, true
		}
		row := s.Evaluated + i
		if value := n.value(s.Main.Mean[row], s.Main.Variance[row], s.LogP[i], s.PriorTerms[i]); !ok || value > greatest {
			best, greatest, ok = loop.Spot{Place: place}, value, true
		}
	}
	return best, ok
}
