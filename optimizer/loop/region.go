package loop

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

// Region is a box around the best point, within the unit cube.
type Region struct {
	Box
	centre []float64
}

// NewRegion returns the trust region of a model: it is centred at the evaluated point
// with the lowest posterior mean, with sides in proportion to its
// lengthscales.
func NewRegion(r *optimizer.Request, m bayes.Surrogate, d *surrogate.Data) *Region {
	mean, _ := m.Posterior(d.X)
	centre := d.X.RawRowView(Lowest(mean, 1)[0])
	dim := len(centre)
	scales := m.Lengthscales()
	middle := floats.Sum(scales) / float64(dim)
	side := length(d.Outcomes(), max(1, r.Parallelism), dim)
	t := &Region{Box{make([]float64, dim), make([]float64, dim)}, centre}
	for i := range dim {
		// In log space; a column that does not matter may go anywhere.
		half := side / 2 * math.Exp(scales[i]-middle)
		t.Lo[i], t.Hi[i] = max(0, centre[i]-half), min(1, centre[i]+half)
	}
	return t
}

// stream returns points of the region that differ from its centre in about
// ChangedAtOnce columns at most.
func (t *Region) stream(r *optimizer.Request) optimizer.Stream {
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

// Local returns the best point of the trust region; ok is false if none was found.
func (l *Loop) Local(ctx context.Context, t *Region) (best Spot, ok bool) {
	count := l.Options.Candidates
	if ctx.Err() != nil {
		count = min(count, hurried)
	}
	places := Gather(nil, l.Request, count, t.stream(l.Request), l.Taken)
	if len(places) == 0 {
		return best, false
	}
	values := l.Evaluate(places)
	for i := range values {
		values[i] = -values[i]
	}
	var starts []Spot
	for _, i := range Lowest(values, max(1, l.Options.Restarts)) {
		if !math.IsNaN(values[i]) && !math.IsInf(values[i], 0) {
			starts = append(starts, Spot{Place: places[i], Value: -values[i]})
		}
	}
	if len(starts) == 0 {
		return best, false
	}
	l.Within = &t.Box
	best = l.Improve(ctx, starts, nil)
	l.Within = nil
	best.Why = "the best of the trust region"
	return best, true
}
