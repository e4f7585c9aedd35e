package hebo

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// While all repeated evaluations agree, another place is probed after probeFrom
// evaluations and each time their number has grown by the factor probeGrowth: an
// objective can be free of noise in only a part of its space.
const (
	probeFrom   = 8
	probeGrowth = 4
)

// indifference is how much more than a repeat a new point must promise, in nats of the
// criterion. In a continuous space some point beside the best one nearly always
// promises a little more, but if the kernel fits badly it says less about whether the
// best one was lucky.
const indifference = 0.1

// maxAgain is the largest share of evaluations that repeat an earlier one: however noisy they
// are, most of the budget goes to new points.
const maxAgain = 0.3

// replicas chooses points to evaluate again, which shows which of the good points were
// only lucky.
type replicas struct {
	places []surrogate.Place
	x      *mat.Dense     // the places' rows
	at     *gp.Candidates // the places
	logP   []float64      // log probabilities that their evaluations complete; nil until needed
	probe  bool           // no two evaluations of a place have differed yet
	probed bool           // a repeated evaluation is pending
	done   int            // repeated evaluations, pending ones included
}

// newReplicas returns the places that may be evaluated again, given what is known of
// their noise. It returns nil if no place should be.
func (s *search) newReplicas(places []surrogate.Place, noise surrogate.Noise) *replicas {
	c := s.prepare(places, noise)
	if c != nil {
		c.x = c.rows(s.Data)
		c.at = s.Main.Fantasies.Candidates(c.x)
	}
	return c
}

// replicates reports whether points may be evaluated again.
func (o proposer) replicates(r *optimizer.Request) bool {
	return o.options.Replicate && r.Repeats && o.options.Noise != NoiseNo
}

// prepare is newReplicas for objectives of any number.
func (s *search) prepare(places []surrogate.Place, noise surrogate.Noise) *replicas {
	if !(proposer{options: s.options}).replicates(s.Request) {
		return nil
	}
	c := &replicas{places: places, probe: noise != surrogate.Noisy, done: s.Repeats}
	if c.probe && !probeDue(places) {
		return nil
	}
	at := make(map[string]bool, len(c.places))
	for _, p := range c.places {
		at[optimizer.KeyOf(s.Data.X.RawRowView(p.Row))] = true
	}
	for _, p := range s.Request.Pending {
		if at[optimizer.KeyOf(s.Request.Encoding.Encode(p.Point))] {
			c.probed = true
			c.done++
		}
	}
	return c
}

// probeDue reports whether another place should be evaluated twice, given that all
// repeated evaluations agreed.
func probeDue(places []surrogate.Place) bool {
	completed, twice := 0, 0
	for _, p := range places {
		completed += len(p.Values)
		if len(p.Values) > 1 {
			twice++
		}
	}
	due := 0
	for n := probeFrom; n <= completed; n *= probeGrowth {
		due++
	}
	return twice < due
}

// again returns the observed place that is most worth another evaluation, with its
// value of the criterion; ok is false if there is none. If no other point is left, the
// number of repeats is not bounded, and a place that is already pending is acceptable. With limits,
// the gain counts by the probability that the place is within all of them, over the best place that
// is more likely so than not.
func (s *search) again(left bool) (best loop.Spot, ok bool) {
	c, d := s.replicas, s.Data
	if !s.mayRepeat(left) {
		return loop.Spot{}, false
	}
	mean, variance := c.at.Posterior()
	if c.logP == nil {
		c.logP = s.Chance.Log(c.x)
	}
	within := s.LogWithin(c.x)
	likely := func(i int) bool { return within[i] >= math.Log(evenOdds) }
	lowest, second := math.Inf(1), math.Inf(1)
	for i, m := range mean {
		switch {
		case !likely(i):
		case m < lowest:
			lowest, second = m, lowest
		default:
			second = min(second, m)
		}
	}
	if math.IsInf(lowest, 1) && left {
		return loop.Spot{}, false // no known point is likely within all limits, and a new one can be
	}
	best.Value = math.Inf(-1)
	for i, p := range c.places {
		x := d.X.RawRowView(p.Row)
		busy := s.Request.Sampler.BusyAt(x)
		if busy && left || c.probe && (len(p.Values) > 1 || !likely(i)) {
			continue
		}
		rival := lowest
		if mean[i] == lowest && !math.IsInf(second, 1) {
			rival = second
		}
		value := s.Chance.OfImprovement(within[i], c.logP[i]) + s.PriorTerm(x)
		if !math.IsInf(rival, 1) {
			value += acquisition.Knowledge(&s.Main.Known, mean[i], variance[i], rival)
		}
		if c.probe {
			value = -mean[i] // probe the incumbent
		}
		if busy {
			value -= math.MaxFloat64 / 4 // after all places that are not pending
		}
		if value > best.Value {
			best, ok = loop.Spot{Place: loop.Place{Point: s.Request.Observations[d.Of[p.Row]].At(), X: x}, Value: value}, true
		}
	}
	return best, ok
}

// mayRepeat reports whether another point may be evaluated again.
func (s *search) mayRepeat(left bool) bool {
	c := s.replicas
	if c == nil || c.probe && c.probed {
		return false
	}
	return !left || float64(c.done) <= maxAgain*float64(s.Data.Completed+s.Pending)
}

// rows returns a matrix of the places.
func (c *replicas) rows(d *surrogate.Data) *mat.Dense {
	_, dim := d.X.Dims()
	x := mat.NewDense(len(c.places), dim, nil)
	for i, p := range c.places {
		x.SetRow(i, d.X.RawRowView(p.Row))
	}
	return x
}
