package pt

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/mixture"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/network"
)

// The effort of a search: points spread over the space and around the best evaluated ones;
// then, in each round, points around the best of those, at ever smaller distances.
const (
	spread     = 400
	around     = 200
	starts     = 5
	perStart   = 25
	bestPoints = 5
)

// distances are the standard deviations of the steps: those around evaluated points, then
// those of the rounds.
var (
	nearBest = []float64{0.2, 0.05, 0.01}
	rounds   = []float64{0.05, 0.015, 0.005, 0.0015, 0.0005}
)

// search chooses the points of a request.
type search struct {
	r       *optimizer.Request
	options Options
	coder   *coder
	data    *surrogate.Data
	failing *surrogate.Feasibility // nil if every evaluation completes

	mean, sd float64     // of the outcomes in data
	x        [][]float64 // observed points, then pending ones
	y        []float64   // standardised outcomes, then predicted means
	best     float64     // the least outcome observed
	lowest   []int       // the best observations, by row of data
	context  *network.Context
}

func newSearch(ctx context.Context, r *optimizer.Request, o Options, c *coder, d *surrogate.Data, batch []optimizer.Suggestion) *search {
	s := &search{r: r, options: o, coder: c, data: d, lowest: loop.Lowest(d.Y, bestPoints)}
	s.mean, s.sd = stat.PopMeanStdDev(d.Y, nil)
	if !(s.sd > 0) {
		s.sd = 1
	}
	for row, i := range d.Of {
		s.x = append(s.x, c.row(r.Observations[i].At(), d.X.RawRowView(row)))
		s.y = append(s.y, (d.Y[row]-s.mean)/s.sd)
	}
	s.best = slices.Min(s.y)
	s.failing = surrogate.FitFeasibility(ctx, r.Problem, r.Encoding, nil, r.Rand)
	s.observe()
	var pending []loop.Place
	for _, p := range r.Pending {
		pending = append(pending, loop.Place{Point: p.Point, X: r.Encoding.Encode(p.Point)})
	}
	for _, b := range batch {
		pending = append(pending, loop.Place{Point: b.Point, X: r.Encoding.Encode(b.Point)})
	}
	if len(pending) > 0 {
		s.pend(pending)
	}
	return s
}

func (s *search) observe() { s.context = s.coder.model.Observe(s.x, s.y) }

// pend counts the places as evaluated to their predicted means.
func (s *search) pend(places []loop.Place) {
	x := s.rows(places)
	for i, p := range s.context.Predict(x) {
		s.x, s.y = append(s.x, x[i]), append(s.y, p.Mean())
	}
	s.observe()
}

func (s *search) rows(places []loop.Place) [][]float64 {
	x := make([][]float64, len(places))
	for i, p := range places {
		x[i] = s.coder.row(p.Point, p.X)
	}
	return x
}

// candidate is a place with what is predicted there.
type candidate struct {
	loop.Place
	predicted mixture.Distribution
	logP      float64 // of the probability that an evaluation completes
	value     float64
}

// rate returns the places with their values.
func (s *search) rate(places []loop.Place) []candidate {
	if len(places) == 0 {
		return nil
	}
	logP := make([]float64, len(places))
	if s.failing != nil {
		logP = s.failing.LogProbability(loop.Rows(places))
	}
	all := make([]candidate, len(places))
	for i, d := range s.context.Predict(s.rows(places)) {
		all[i] = candidate{places[i], d, logP[i], s.value(d, logP[i])}
	}
	return all
}

// value returns the acquisition function's value. For an upper confidence bound, a failure
// counts as the worst outcome.
func (s *search) value(d mixture.Distribution, logP float64) float64 {
	switch s.options.Acquisition {
	case PI:
		return d.LogProbabilityBelow(s.best) + logP
	case UCB:
		p := math.Exp(logP)
		return p*d.UCB(s.options.Kappa) - (1-p)*slices.Max(s.y)
	default:
		return d.LogExpectedImprovement(s.best) + logP
	}
}

// next chooses a point.
func (s *search) next(ctx context.Context) (optimizer.Suggestion, error) {
	best, found := s.maximise(ctx)
	if !found {
		p, err := s.r.Sampler.Draw(optimizer.Uniform(s.r.Rand))
		if err != nil {
			return optimizer.Suggestion{}, err
		}
		best = s.rate([]loop.Place{{Point: p, X: s.r.Encoding.Encode(p)}})[0]
	}
	suggestion := s.suggestion(best)
	s.r.Sampler.MarkTaken(best.Point)
	s.pend([]loop.Place{best.Place})
	if ctx.Err() != nil {
		suggestion.Reasons.Note += loop.CutShort
	}
	return suggestion, nil
}

// suggestion explains a choice.
func (s *search) suggestion(c candidate) optimizer.Suggestion {
	mean, variance := c.predicted.Mean(), c.predicted.Variance()
	expected, sd := s.data.Moments(s.mean+s.sd*mean, s.sd*s.sd*variance)
	note := "could beat the best point so far: the transformer is unsure there"
	if mean < s.best {
		note = "expected to beat the best point so far by the transformer"
	}
	reasons := optimizer.Reasons{Mean: loop.Finite(expected), SD: loop.Finite(sd), Note: note}
	reasons.Acquisition = map[string]float64{}
	if v := loop.Finite(c.value); v != nil {
		reasons.Acquisition[string(s.options.Acquisition)] = *v
	}
	if s.failing != nil {
		reasons.Acquisition["feasible"] = math.Exp(c.logP)
	}
	return optimizer.Suggestion{Point: c.Point, Source: optimizer.SourceModel, Reasons: reasons}
}

// maximise returns the best point that may be suggested: of all of them, if the space is
// small.
func (s *search) maximise(ctx context.Context) (best candidate, found bool) {
	if s.r.Remaining != nil && len(s.r.Remaining) <= spread+around {
		var places []loop.Place
		for _, p := range s.r.Remaining {
			if x := s.r.Encoding.Encode(p); !s.r.Sampler.TakenAt(x) {
				places = append(places, loop.Place{Point: p, X: x})
			}
		}
		return s.bestOf(s.rate(places))
	}
	places := loop.Gather(nil, s.r, spread, loop.SpreadOut(s.r.Encoding.Dim(), s.r.Rand), s.takenOrEvaluated)
	places = loop.Gather(places, s.r, spread+around, s.near(s.evaluated(), nearBest...), s.takenOrEvaluated)
	all := s.rate(places)
	for _, distance := range rounds {
		if ctx.Err() != nil {
			break
		}
		if len(all) == 0 {
			break
		}
		all = highest(all, starts)
		from := make([][]float64, len(all))
		for i, c := range all {
			from[i] = c.X
		}
		all = append(all, s.rate(loop.Gather(nil, s.r, starts*perStart, s.near(from, distance), s.takenOrEvaluated))...)
	}
	return s.bestOf(all)
}

// highest returns the candidates with the count highest values, best first.
func highest(all []candidate, count int) (kept []candidate) {
	negative := make([]float64, len(all))
	for i, c := range all {
		negative[i] = -c.value
	}
	for _, i := range loop.Lowest(negative, count) {
		kept = append(kept, all[i])
	}
	return kept
}

// bestOf returns the candidate with the largest value, the first of equal ones.
func (s *search) bestOf(all []candidate) (best candidate, found bool) {
	for _, c := range all {
		if !found || c.value > best.value {
			best, found = c, true
		}
	}
	return best, found
}

// takenOrEvaluated reports whether the place at x must not be suggested, or was evaluated.
func (s *search) takenOrEvaluated(x []float64) bool {
	if s.r.Sampler.TakenAt(x) {
		return true
	}
	for row := range s.data.Of {
		if slices.Equal(s.data.X.RawRowView(row), x) {
			return true
		}
	}
	return false
}

// evaluated returns the coordinates of the best observations.
func (s *search) evaluated() [][]float64 {
	from := make([][]float64, len(s.lowest))
	for i, row := range s.lowest {
		from[i] = mat.Row(nil, row, s.data.X)
	}
	return from
}

// near returns a stream of points around one of those given, at one of the distances.
func (s *search) near(from [][]float64, distances ...float64) optimizer.Stream {
	rng, columns := s.r.Rand, s.r.Encoding.Columns()
	turn := 0
	return func(x []float64) {
		copy(x, from[turn%len(from)])
		distance := distances[turn/len(from)%len(distances)]
		turn++
		always := rng.IntN(len(x))
		for i, c := range columns {
			if i != always && len(x) > loop.ChangedAtOnce && rng.Float64() >= loop.ChangedAtOnce/float64(len(x)) {
				continue
			}
			x[i] = min(1, max(0, loop.Step(c, x[i], distance, i == always, rng)))
		}
	}
}
