package hebo

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// A study's first wholeEffort evaluations get the usual effort, whatever they are worth. After
// them there are fewer candidates the more evaluations there are, but never fewer than
// leastCandidates: what a candidate costs grows with the square of that number. On Levy in ten
// dimensions after 180 evaluations, searches from 500 candidates found what those from 1,000 did;
// from 250, they lost 0.16 nats.
const (
	wholeEffort     = 128
	leastCandidates = 500
)

// A search has settled once settledFrom requests promised nothing, and one that promises something
// halves their count, which is at most settledMost. A model of settledPoints observations then
// takes the place of the whole one. It has no power transform: among values that differ by many
// magnitudes, that would hide where the last ones are better.
const (
	settledFrom       = 8
	settledMost       = 16
	settledPoints     = 160
	settledCandidates = 250
)

// A request promises nothing if the improvement that its point is expected to bring is less than
// leastGain of the spread of the objective's values, or if its logarithm, in standard deviations of
// the model's outcomes, is less than leastLogEI: a millionth. Models are often too sure, so both are
// far below what anybody would notice.
const (
	leastGain  = 1e-7
	leastLogEI = -14
)

// sized returns the proposer with the effort that a request is worth.
func (o proposer) sized(r *optimizer.Request, memory *memory) proposer {
	n := len(r.Observations)
	if n <= wholeEffort || o.options.Paper || o.options.Acquisition != EI {
		return o
	}
	o.effort.candidates = min(o.effort.candidates, max(leastCandidates, o.effort.candidates*wholeEffort/n))
	settled := memory.Idle >= settledFrom
	if settled != memory.Settled { // the hyperparameters are of other data
		memory.Settled, memory.Seen = settled, 0
	}
	if settled {
		o.effort.candidates = min(o.effort.candidates, settledCandidates)
		o.options.Surrogate.Points, o.options.Surrogate.Transform = settledPoints, false
	}
	return o
}

// watch remembers whether the search found a point that promises something. Noise makes every
// improvement look small beside the spread of values, so a noisy objective never settles.
func (o proposer) watch(r *optimizer.Request, memory *memory, batch []optimizer.Suggestion, noise surrogate.Noise) {
	i := slices.IndexFunc(batch, func(s optimizer.Suggestion) bool { return s.Source == optimizer.SourceModel })
	switch {
	case noise == surrogate.Noisy:
		memory.Idle = 0
	case i < 0 || batch[i].Repeat: // no new point, so nobody knows what is left to gain
	case o.promises(r, &batch[i].Reasons):
		memory.Idle /= 2
	default:
		memory.Idle = min(memory.Idle+1, settledMost)
	}
}

// promises reports whether a point is expected to bring an improvement that matters.
func (o proposer) promises(r *optimizer.Request, why *optimizer.Reasons) bool {
	if v, known := why.Acquisition[acquisition.EI{}.Name()]; known && v < leastLogEI {
		return false
	}
	if why.Mean == nil || why.SD == nil {
		return true
	}
	var costs []float64
	for i := range r.Observations {
		if r.Observations[i].Outcome == optimizer.OutcomeCompleted {
			costs = append(costs, r.Direction.Cost(r.Observations[i].Values.First()))
		}
	}
	if len(costs) == 0 {
		return true
	}
	best := slices.Min(costs)
	// The points of the design are spread over the space. The better half of their values tells the
	// objective's scale, even if the worse half are penalties.
	design := slices.Sorted(slices.Values(costs[:min(len(costs), o.initial(r))]))
	spread := design[len(design)/4] - best
	gain := acquisition.LogEI(r.Direction.Cost(*why.Mean), *why.SD, best)
	return !(gain < math.Log(leastGain*spread))
}
