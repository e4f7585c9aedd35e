package loop

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
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

// Side replays the trust region over all outcomes in ledger order, in rounds of parallel
// ones; lower outcomes are better, and +Inf is the outcome of an evaluation that did not
// complete. It returns the length of the sides, and from which outcome on the region has
// not been restarted. The first initial outcomes after a restart are a design, which
// neither succeeds nor fails. The result depends on the outcomes alone.
func Side(y []float64, parallel, dim, initial int) (side float64, since int) {
	tolerance := int(math.Ceil(max(leastFailing, float64(dim)) / float64(parallel)))
	restart := func(from int) (next, good, bad int, best float64) {
		side, since, best = startLength, from, math.Inf(1)
		if next = min(from+initial, len(y)); next > from {
			best = floats.Min(y[from:next])
		}
		return next, 0, 0, best
	}
	next, good, bad, best := restart(0)
	for next < len(y) {
		from := next
		next = min(from+parallel, len(y))
		round := floats.Min(y[from:next])
		if !math.IsInf(round, 1) && (math.IsInf(best, 1) || round < best-successGain*math.Abs(best)) {
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
			next, good, bad, best = restart(next)
		}
	}
	return side, since
}

// Region is a box around the best point, within the unit cube.
type Region struct{ Lo, Hi, centre []float64 }

// NewRegion returns the trust region of a model: it is centred at the evaluated point
// with the lowest posterior mean, with sides in proportion to its lengthscales, side in
// the geometric mean (Eriksson et al. 2019, section 2: L·λᵢ/(∏λⱼ)^(1/d)).
func NewRegion(m bayes.Surrogate, d *surrogate.Data, side float64) *Region {
	mean, _ := m.Posterior(d.X)
	centre := d.X.RawRowView(Lowest(mean, 1)[0])
	dim := len(centre)
	scales := m.Lengthscales()
	middle := floats.Sum(scales) / float64(dim)
	t := &Region{make([]float64, dim), make([]float64, dim), centre}
	for i := range dim {
		// In log space; a column that does not matter may go anywhere.
		half := side / 2 * math.Exp(scales[i]-middle)
		t.Lo[i], t.Hi[i] = max(0, centre[i]-half), min(1, centre[i]+half)
	}
	return t
}

// Stream returns points of the region that differ from its centre in about
// ChangedAtOnce columns at most.
func (t *Region) Stream(r *optimizer.Request) optimizer.Stream {
	spread := SpreadOut(len(t.centre), r.Rand)
	probability := min(1, ChangedAtOnce/float64(len(t.centre)))
	return func(x []float64) {
		spread(x)
		always := r.Rand.IntN(len(x))
		for i, u := range x {
			if i != always && r.Rand.Float64() >= probability {
				x[i] = t.centre[i]
				continue
			}
			x[i] = t.Lo[i] + u*(t.Hi[i]-t.Lo[i])
		}
	}
}
