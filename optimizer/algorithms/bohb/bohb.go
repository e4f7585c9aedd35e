// Package bohb implements the model of BOHB (Falkner, Klein and Hutter 2018, BOHB: Robust
// and Efficient Hyperparameter Optimization at Scale): kernel densities of the best points
// and of the others over all parameters together. One in a few points is random. Each other
// one is the best of some draws around good points, by the ratio of the two densities.
// BOHB's brackets are not part of it: a study promotes trials if its space has a fidelity.
//
// The paper's program ignores points that are being evaluated. Here they count among the
// others, which is the constant liar of Optuna's TPE, so that requests that overlap do not
// get the same point. Failed, infeasible and pruned evaluations count among the others too.
package bohb

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Best, Random, Factor, Least float64
	Candidates                  int
}

// Settings returns the settings with the defaults of the paper and its program.
func Settings() setting.Set {
	return setting.Set{
		{Name: "best", Default: 0.15, Min: 0.01, Max: 0.5, Doc: "Share of the completed trials that counts as good."},
		{Name: "random", Default: 1.0 / 3, Min: 0, Max: 1, Doc: "Share of points that are drawn at random, against blind spots."},
		{Name: "candidates", Default: 64, Min: 1, Max: 10000, Doc: "Draws of which the most promising is taken."},
		{
			Name: "bandwidth", Default: 3.0, Min: 0.1, Max: 100,
			Doc: "Factor of the bandwidths of numbers for the draws; a wider one explores more.",
		},
		{Name: "minBandwidth", Default: 1e-3, Min: 1e-9, Max: 0.5, Doc: "Smallest bandwidth, as a share of a parameter's range."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{
		Best: v.Float("best"), Random: v.Float("random"), Candidates: v.Int("candidates"), Factor: v.Float("bandwidth"),
		Least: v.Float("minBandwidth"),
	}
}

// New returns the optimiser. It has no state, and recommends the best value.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(proposer{options: o}) }

type proposer struct {
	optimizer.BestValue
	options Options
}

// Propose implements optimizer.Proposer.
func (a proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	s := newSearch(r, a.options)
	batch, err := r.Extend(ctx, nil, r.N, s.next)
	return batch, r.State, err
}

// search chooses the points of a request.
type search struct {
	r       *optimizer.Request
	options Options
	columns []column
	// good and others are coordinates, NaN where a parameter is inactive. They are empty
	// while there are too few points for a model.
	good, others [][]float64
}

// newSearch splits the observations, as the paper's program does.
func newSearch(r *optimizer.Request, o Options) *search {
	s := &search{r: r, options: o, columns: newColumns(r.Encoding)}
	var completed []optimizer.Observation
	for _, x := range r.Observations {
		if x.Outcome == optimizer.OutcomeCompleted {
			completed = append(completed, x)
		} else {
			s.others = append(s.others, s.coordinates(x.At()))
		}
	}
	least := len(s.columns) + 1
	if len(s.columns) == 0 || len(completed) < least+2 {
		s.others = nil
		return s
	}
	slices.SortStableFunc(completed, func(a, b optimizer.Observation) int {
		return cmp.Compare(r.Direction.Cost(a.Values.First()), r.Direction.Cost(b.Values.First()))
	})
	good := min(len(completed)-1, max(least, int(o.Best*float64(len(completed)))))
	for i, x := range completed {
		if i < good {
			s.good = append(s.good, s.coordinates(x.At()))
		} else {
			s.others = append(s.others, s.coordinates(x.At()))
		}
	}
	for _, p := range r.Pending {
		s.others = append(s.others, s.coordinates(p.Point))
	}
	return s
}

// coordinates returns those of a point.
func (s *search) coordinates(p study.Point) []float64 {
	x := s.r.Encoding.Encode(p)
	for k, c := range s.columns {
		if _, active := p[c.Parameter.Name]; !active {
			x[k] = math.NaN()
			continue
		}
		x[k] = c.value(x[k])
	}
	return x
}

// next chooses a point, and counts it among the others for those after it.
func (s *search) next() (optimizer.Suggestion, error) {
	suggestion, ok := optimizer.Suggestion{}, false
	if len(s.good) > 0 && s.r.Rand.Float64() >= s.options.Random {
		suggestion, ok = s.choose()
	}
	if !ok {
		point, err := s.r.Sampler.Draw(optimizer.Uniform(s.r.Rand))
		if err != nil {
			return optimizer.Suggestion{}, err
		}
		suggestion = optimizer.Suggestion{Point: point, Source: optimizer.SourceRandom, Reasons: optimizer.Reasons{Note: "drawn at random"}}
	}
	s.r.Sampler.MarkTaken(suggestion.Point)
	if len(s.good) > 0 {
		s.others = append(s.others, s.coordinates(suggestion.Point))
	}
	return suggestion, nil
}

// choose returns the best of the draws around good points; false if none may be suggested.
func (s *search) choose() (best optimizer.Suggestion, ok bool) {
	rng := s.r.Rand
	good := newDensity(s.columns, impute(s.columns, s.good, rng), s.options.Least)
	others := newDensity(s.columns, impute(s.columns, s.others, rng), s.options.Least)
	const smallest = 1e-32 // of a density, as in the paper's program
	var top float64
	for range s.options.Candidates {
		x := good.draw(s.options.Factor, rng)
		place := make([]float64, len(x))
		for k, c := range s.columns {
			place[k] = c.gridPlace(x[k])
		}
		p := s.r.Encoding.Decode(place)
		if !s.r.Space.Feasible(p) || s.r.Sampler.Taken(p) {
			continue
		}
		ratio := math.Log(max(good.at(x), smallest)) - math.Log(max(others.at(x), smallest))
		if !ok || ratio > top {
			ok, top = true, ratio
			best = optimizer.Suggestion{Point: p, Source: optimizer.SourceModel, Reasons: optimizer.Reasons{
				Acquisition: map[string]float64{"logratio": ratio}, Note: "the likeliest to be among the good ones, of draws around them",
			}}
		}
	}
	return best, ok
}

// impute replaces the coordinates of inactive parameters by those of other rows, or at
// random if no row has one.
func impute(columns []column, rows [][]float64, rng *rand.Rand) [][]float64 {
	filled := make([][]float64, len(rows))
	for i := range rows {
		filled[i] = slices.Clone(rows[i])
	}
	for k, c := range columns {
		var known []float64
		for _, row := range rows {
			if !math.IsNaN(row[k]) {
				known = append(known, row[k])
			}
		}
		if len(known) == len(rows) {
			continue
		}
		for _, row := range filled {
			switch {
			case !math.IsNaN(row[k]):
			case len(known) > 0:
				row[k] = known[rng.IntN(len(known))]
			default:
				row[k] = c.value(rng.Float64())
			}
		}
	}
	return filled
}

// draw returns coordinates around a row: numbers from a normal distribution whose
// bandwidth is multiplied by factor, truncated to the range, others from their kernel.
func (d *density) draw(factor float64, rng *rand.Rand) []float64 {
	x := slices.Clone(d.data[rng.IntN(len(d.data))])
	for k, c := range d.columns {
		switch h := d.width[k]; {
		case c.kind == continuous:
			x[k] = truncated(x[k], h*factor, rng)
		case rng.Float64() < h:
			x[k] = float64(rng.IntN(c.Levels))
		}
	}
	return x
}

// truncated draws from a normal distribution around m within [0,1].
func truncated(m, sd float64, rng *rand.Rand) float64 {
	cdf := func(x float64) float64 { return math.Erfc(-(x-m)/(sd*math.Sqrt2)) / 2 }
	low, high := cdf(0), cdf(1)
	x := m - sd*math.Sqrt2*math.Erfcinv(2*(low+(high-low)*rng.Float64()))
	if !(x >= 0) {
		return 0
	}
	return min(x, 1)
}
