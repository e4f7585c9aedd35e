package hebo

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// The trust region of TuRBO-1 (Eriksson et al. 2019, Scalable Global Optimization via
// Local Bayesian Optimization): the initial and maximum length of its sides, the length
// below which it restarts, the rounds of successes after which it doubles, and the
// gain, relative to the best value, that counts as a success.
const (
	startLength  = 0.8
	mostLength   = 1.6
	leastLength  = 1. / 128
	successes    = 3
	successGain  = 1e-3
	leastFailing = 4 // rounds of failures after which it halves, divided by the parallelism
)

// length replays the trust region over the outcomes in ledger order, in rounds of
// parallel ones; lower outcomes are better. It depends on the outcomes alone.
func length(y []float64, parallel, dim int) float64 {
	tolerance := int(math.Ceil(max(leastFailing, float64(dim)) / float64(parallel)))
	side, good, bad := startLength, 0, 0
	best := math.Inf(1)
	for from := 0; from < len(y); from += parallel {
		round := floats.Min(y[from:min(from+parallel, len(y))])
		if math.IsInf(best, 1) || round < best-successGain*math.Abs(best) {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
		}
		best = min(best, round)
		switch {
		case good >= successes:
			side, good = min(2*side, mostLength), 0
		case bad >= tolerance:
			side, bad = side/2, 0
		}
		if side < leastLength {
			side, good, bad = startLength, 0, 0
		}
	}
	return side
}

// region is a box around the best point, within the unit cube.
type region struct{ centre, lo, hi []float64 }

// newRegion returns the trust region of a model: it is centred at the evaluated point
// with the lowest posterior mean, with sides in proportion to its
// lengthscales.
func newRegion(r *optimizer.Request, m bayes.Surrogate, d *surrogate.Data) *region {
	mean, _ := m.Posterior(d.X)
	centre := d.X.RawRowView(lowest(mean, 1)[0])
	dim := len(centre)
	scales := m.Lengthscales()
	middle := floats.Sum(scales) / float64(dim)
	side := length(d.Outcomes(), max(1, r.Parallelism), dim)
	t := &region{centre: centre, lo: make([]float64, dim), hi: make([]float64, dim)}
	for i := range dim {
		// In log space; a column that does not matter may go anywhere.
		half := side / 2 * math.Exp(scales[i]-middle)
		t.lo[i], t.hi[i] = max(0, centre[i]-half), min(1, centre[i]+half)
	}
	return t
}

// stream returns points of the region that differ from its centre in about
// changedAtOnce columns at most.
func (t *region) stream(r *optimizer.Request) optimizer.Stream {
	spread := spreadOut(len(t.centre), r.Rand)
	probability := min(1, changedAtOnce/float64(len(t.centre)))
	return func(x []float64) {
		spread(x)
		always := r.Rand.IntN(len(x))
		for i, u := range x {
			if i != always && r.Rand.Float64() >= probability {
				x[i] = t.centre[i]
				continue
			}
			x[i] = t.lo[i] + u*(t.hi[i]-t.lo[i])
		}
	}
}

// local returns the best point of the trust region; ok is false if none was found.
func (s *search) local(ctx context.Context) (best spot, ok bool) {
	count := s.options.Candidates
	if ctx.Err() != nil {
		count = min(count, hurried)
	}
	places := gather(nil, s.r, count, s.region.stream(s.r), s.taken)
	if len(places) == 0 {
		return best, false
	}
	x := rows(places)
	mean, variance := s.fantasies.Posterior(x)
	logP, prior := s.chance.log(x), s.believed(places)
	values := make([]float64, len(places))
	for i, p := range places {
		values[i] = -s.value(mean.RawRowView(i), variance[i], p.x, logP[i]) - prior[i]
	}
	var starts []spot
	for _, i := range lowest(values, max(1, s.options.Restarts)) {
		if !math.IsNaN(values[i]) && !math.IsInf(values[i], 0) {
			starts = append(starts, spot{place: places[i], value: -values[i]})
		}
	}
	if len(starts) == 0 {
		return best, false
	}
	s.within = s.region
	best = s.improve(ctx, starts, nil)
	s.within = nil
	best.why = "the best of the trust region"
	return best, true
}
