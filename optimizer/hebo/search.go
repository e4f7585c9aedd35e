package hebo

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// incumbentsAmong is how many of the lowest observations are searched for the lowest
// posterior mean: a worse observation rarely has it.
const incumbentsAmong = 64

// explore is the period of the portfolio's upper confidence bound.
const explore = 4

// improved is how many points of one request are searched for beyond the candidates.
// With more points at once, there is so little information for each that the best
// candidate is as good.
const improved = 64

// hurried is the number of candidates when the time for a suggestion has run out.
const hurried = 100

// search picks the points of one request, one after another.
type search struct {
	r         *optimizer.Request
	model     bayes.Surrogate
	data      *surrogate.Data
	options   Options
	fantasies bayes.Fantasies
	// criterion is the acquisition function, known what it knows beside the posterior.
	criterion bayes.Acquisition
	known     bayes.Known
	kappa     float64 // weight of the uncertainty in bounds
	exact     bool    // the places are all that exist
	places    []place // none was taken when the search began
	// at holds the incumbents' rows, then the places'.
	at        bayes.Candidates
	evaluated int // rows of incumbents in at
	first     int // number of the trial that the first point becomes
	picked    int
	// floor is, for each draw, the lowest mean at a point picked so far, at the time it
	// was picked.
	floor   []float64
	pending int
	chance  chance
	beliefs *beliefs
	region  *region   // nil without a trust region
	within  *region   // bounds of the search; nil means the cube
	trust   float64   // the weight of the beliefs
	prior   []float64 // the beliefs' contribution to the places' values
	logP    []float64 // log probabilities that the places' evaluations complete
	front   int       // how many of the places are on the ensemble's Pareto front
	penalty *penalty
	mace    *mace // nil for a single acquisition
	// replicas is nil if no point is to be evaluated again.
	replicas *replicas
	// seen holds all observed points: only replicas repeat them.
	seen     map[string]bool
	repeated int      // completed evaluations that repeat a completed point
	flats    *flats   // nil if the objective is not flat anywhere
	trail    *trail   // nil if no point is drawn at random
	sampled  *sampled // nil if no function was drawn
	memory   *memory
}

// newSearch prepares the search for the points after batch; feasible may be nil.
func (o proposer) newSearch(ctx context.Context, r *optimizer.Request, m *surrogate.Model, feasible *surrogate.Feasibility, batch []optimizer.Suggestion, memory *memory) *search {
	s := &search{r: r, model: bayes.Gaussian(m.GP), data: m.Data, memory: memory, options: o.options, penalty: &penalty{}, chance: newChance(feasible, m.Data), first: r.First + len(batch), pending: len(r.Pending) + len(batch)}
	s.remember()
	draws := 1
	if o.options.Fantasy == Draws {
		draws = o.options.Draws
	}
	s.fantasies = s.model.Fantasies(draws)
	kappa := o.options.Kappa
	if kappa == 0 {
		kappa = confidence(m.Data.Completed, r.Parallelism, r.Encoding.Dim())
	}
	s.kappa = kappa
	s.criterion = o.options.Acquisition.criterion(kappa)
	s.known.Incumbents = make([]float64, draws)
	s.floor = slices.Repeat([]float64{math.Inf(1)}, draws)
	known := make([]place, 0, incumbentsAmong+s.pending)
	for _, row := range lowest(m.Data.Y, incumbentsAmong) {
		known = append(known, place{x: m.Data.X.RawRowView(row)})
	}
	if o.options.Fantasy != None {
		evaluated := len(known)
		for _, p := range r.Pending {
			known = append(known, place{p.Point, r.Encoding.Encode(p.Point)})
		}
		for _, b := range batch {
			known = append(known, place{b.Point, r.Encoding.Encode(b.Point)})
		}
		if len(known) > evaluated {
			s.fantasise(rows(known[evaluated:]))
		}
	}
	places := m.Data.Places()
	noise := o.options.Noise.of(places)
	if s.replicas = s.newReplicas(places, noise); s.replicas != nil && !s.replicas.probe {
		s.known.Noise = s.model.Noise()
	}
	s.trail = s.newTrail(noise, batch)
	count := o.options.Candidates
	if ctx.Err() != nil {
		count = min(count, hurried)
	}
	if s.beliefs = newBeliefs(r.Encoding); s.beliefs != nil {
		s.trust = o.options.trust(r)
	}
	s.places = candidates(r, m.Data, count, s.beliefs, s.taken)
	s.logP = make([]float64, len(s.places))
	if s.chance.model != nil && len(s.places) > 0 {
		s.logP = s.chance.log(rows(s.places))
	}
	s.prior = s.believed(s.places)
	s.exact = r.Remaining != nil && len(s.places) == len(r.Remaining)
	s.flats = s.newFlats(noise)
	s.evaluated = len(known)
	s.at = s.fantasies.Candidates(rows(append(known, s.places...)))
	mean, _ := s.at.Posterior()
	s.findIncumbents(mean)
	if s.options.Fantasy == Penalty {
		s.penalty.estimate(s)
	}
	if o.options.TrustRegion {
		s.region = newRegion(r, s.model, s.data)
	}
	if s.options.Acquisition == MACE {
		s.ensemble(ctx, known)
	}
	return s
}

// ensemble replaces the places by those of the Pareto front, unless the places are all
// that exist.
func (s *search) ensemble(ctx context.Context, known []place) {
	s.mace = newMACE(s)
	if s.exact {
		return
	}
	front, err := s.mace.front(ctx, rows(known))
	if err == nil && len(front) > 0 {
		// The even spread stays behind, for batches larger than the front.
		s.front = len(front)
		s.places = append(front, s.places...)
		s.prior = append(s.believed(front), s.prior...)
		s.logP = append(s.chance.log(rows(front)), s.logP...)
		s.at = s.fantasies.Candidates(rows(append(known, s.places...)))
	}
}

// remember records which points were observed.
func (s *search) remember() {
	s.seen = make(map[string]bool, len(s.r.Observations))
	completed := make(map[string]bool, len(s.r.Observations))
	for _, o := range s.r.Observations {
		key := surrogate.KeyOf(s.r.Encoding.Encode(o.Point))
		s.seen[key] = true
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		if completed[key] {
			s.repeated++
		}
		completed[key] = true
	}
}

// taken reports whether the place at x was observed, is pending, or was picked.
func (s *search) taken(x []float64) bool {
	return s.seen[surrogate.KeyOf(x)] || s.r.Sampler.TakenAt(x)
}

// fantasise adds points without known values to the model.
func (s *search) fantasise(x *mat.Dense) {
	n, _ := x.Dims()
	y := s.data.Y
	switch s.options.Fantasy {
	case Draws:
		s.fantasies.Draw(x, normals(n, s.fantasies.Draws(), s.r.Rand))
	case LiarMin:
		s.fantasies.Tell(x, slices.Repeat([]float64{slices.Min(y)}, n))
	case LiarMean:
		s.fantasies.Tell(x, slices.Repeat([]float64{bayes.Average(y)}, n))
	case LiarMax:
		s.fantasies.Tell(x, slices.Repeat([]float64{slices.Max(y)}, n))
	case Believer:
		s.fantasies.Believe(x)
	case Penalty:
		mean, variance := s.fantasies.Posterior(x)
		for i := range n {
			s.penalty.add(x.RawRowView(i), mean.At(i, 0), variance[i])
		}
	case None, Thompson:
	}
}

// next picks the best point; if ctx has ended, it takes the best candidate without a
// search. ok is false if there is none.
func (s *search) next(ctx context.Context) (suggestion optimizer.Suggestion, ok bool) {
	if s.options.Acquisition == Portfolio {
		s.criterion = bayes.LogEI{}
		if (s.first+s.picked)%explore == 0 {
			s.criterion = bayes.UCB{Kappa: s.kappa}
		}
	}
	if random, drawn := s.escape(); drawn {
		return random, true
	}
	mean, variance := s.at.Posterior()
	s.findIncumbents(mean)
	values := make([]float64, len(s.places))
	for i := range values {
		row := s.evaluated + i
		values[i] = math.Inf(-1)
		if !s.r.Sampler.TakenAt(s.places[i].x) {
			values[i] = s.value(mean.RawRowView(row), variance[row], s.places[i].x, s.logP[i]) + s.prior[i]
		}
	}
	starts := s.starts(values)
	if len(starts) == 0 && s.r.Encoding.Discrete() {
		if again, found := s.again(false); found {
			return s.repeat(again), true
		}
	}
	best, ok := s.fresh(ctx, mean, variance, starts, nil)
	if ok && s.flats.around(best.x) {
		if best, ok = s.spread(values); !ok {
			best, ok = s.fresh(ctx, mean, variance, s.starts(s.flats.avoid(values, s.places)), s.flats)
		}
	}
	if again, found := s.again(true); found && (!ok || s.replicas.probe || again.value > s.promise(best)-indifference) {
		return s.repeat(again), true
	}
	if !ok {
		return suggestion, false
	}
	return s.pick(best), true
}

// fresh returns the best new point, given the posterior at the known points and the
// places, and the best place; ok is false if there is none.
func (s *search) fresh(ctx context.Context, mean *mat.Dense, variance []float64, starts []spot, avoided *flats) (best spot, ok bool) {
	if s.options.Fantasy == Thompson {
		return s.sample()
	}
	if s.mace != nil {
		return s.member(mean, variance)
	}
	if s.region != nil && !s.exact && (s.first+s.picked)%2 == 1 {
		if best, ok = s.local(ctx); ok {
			return best, true
		}
	}
	if len(starts) == 0 {
		return best, false
	}
	if !s.exact && s.picked < improved {
		return s.improve(ctx, starts, avoided), true
	}
	return starts[0], true
}

// promise returns the value of evaluating a new point, in the unit of again's values.
func (s *search) promise(best spot) float64 {
	if s.criterion == (bayes.LogEI{}) && s.options.Fantasy != Thompson {
		return best.value
	}
	x := rows([]place{best.place})
	mean, variance := s.fantasies.Posterior(x)
	value := bayes.LogEI{}.Value(&s.known, mean.RawRowView(0), variance[0])
	return s.chance.ofImprovement(value, s.chance.log(x)[0]) + s.trust*s.beliefs.log(nil, best.x, 0)
}

// believed returns the contribution of the parameters' priors to the places' values.
func (s *search) believed(places []place) []float64 {
	values := make([]float64, len(places))
	for i := range values {
		values[i] = s.trust * s.beliefs.log(nil, places[i].x, 0)
	}
	return values
}

// value returns the value of a place without the parameters' priors, given its
// posterior and the logarithm of the probability that its evaluation completes.
func (s *search) value(mean []float64, variance float64, x []float64, logP float64) float64 {
	return s.chance.of(s.criterion, s.criterion.Value(&s.known, mean, variance), logP) + s.penalty.value(nil, x)
}

// member returns the ensemble's next point.
func (s *search) member(mean *mat.Dense, variance []float64) (best spot, ok bool) {
	for _, count := range []int{s.front, len(s.places)} {
		available := func(i int) bool { return i < count && !s.r.Sampler.TakenAt(s.places[i].x) }
		i, why, found := s.mace.choose(mean, variance, s.evaluated, s.picked, s.r.N, available)
		if found {
			return spot{place: s.places[i], why: why}, true
		}
	}
	return best, false
}

// spot is a place with its value.
type spot struct {
	place
	value float64
	why   string // why it was picked, unless for its value alone
}

// starts returns the best places, best first: half from the first half of the places
// and half from the second, which are of different kinds. A search that started only
// around the best points would stay there.
func (s *search) starts(values []float64) []spot {
	var starts []spot
	middle := len(values) / 2
	add := func(lo, hi, count int) {
		negative := make([]float64, hi-lo)
		for i := range negative {
			negative[i] = -values[lo+i]
		}
		for _, i := range lowest(negative, count) {
			if !math.IsInf(values[lo+i], -1) && !math.IsNaN(values[lo+i]) {
				starts = append(starts, spot{place: s.places[lo+i], value: values[lo+i]})
			}
		}
	}
	add(0, middle, max(1, s.options.Restarts/2))
	add(middle, len(values), max(1, (s.options.Restarts+1)/2))
	slices.SortStableFunc(starts, func(a, b spot) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		default:
			return 0
		}
	})
	return starts
}

// findIncumbents sets the incumbents from the posterior means at the known
// points.
func (s *search) findIncumbents(mean *mat.Dense) {
	copy(s.known.Incumbents, s.floor)
	for i := range s.evaluated {
		lower(s.known.Incumbents, mean.RawRowView(i))
	}
}

// lower lowers each of dst's values to that of row if row's is smaller.
func lower(dst, row []float64) {
	for i, v := range row {
		dst[i] = min(dst[i], v)
	}
}

// pick makes a suggestion of the spot and adds its simulated values to the model.
func (s *search) pick(best spot) optimizer.Suggestion {
	x := rows([]place{best.place})
	at := s.fantasies.Candidates(x)
	mean, variance := at.Posterior()
	suggestion := optimizer.Suggestion{Point: best.point, Source: optimizer.SourceModel}
	expected, sd := s.data.Moments(bayes.Average(mean.RawRowView(0)), variance[0])
	suggestion.Reasons = optimizer.Reasons{
		Mean:        finite(expected),
		SD:          finite(sd),
		Acquisition: s.worth(best, mean.RawRowView(0), variance[0]),
		Pending:     s.pending,
		Note:        s.note(best.why, mean.RawRowView(0)),
	}
	s.pending++
	s.r.Sampler.Take(best.point)
	s.trail.add(best.x)
	s.picked++
	if s.options.Fantasy != None {
		s.fantasise(x)
		mean, _ = at.Posterior() // in each draw, given the value that was drawn
		lower(s.floor, mean.RawRowView(0))
	}
	return suggestion
}

// worth lists the values of the acquisition functions at a picked point, without the
// parameters' priors. For Thompson sampling it lists the drawn function's value.
func (s *search) worth(p spot, mean []float64, variance float64) map[string]float64 {
	x := []place{p.place}
	logP := s.chance.log(rows(x))[0]
	values := map[string]float64{s.criterion.Name(): s.chance.of(s.criterion, s.criterion.Value(&s.known, mean, variance), logP)}
	switch {
	case p.why == lowestDrawn:
		values = map[string]float64{string(Thompson): p.value - s.believed(x)[0]}
	case s.mace != nil:
		exact := *s.mace
		exact.robust = 0
		score := make([]float64, 3)
		exact.score(score, mean, variance, logP, 0)
		values = map[string]float64{string(UCB): -score[0], string(LogEI): -score[1], string(LogPI): -score[2]}
	}
	if s.chance.model != nil {
		values["feasible"] = math.Exp(logP)
	}
	return values
}

// repeat makes a suggestion of an observed place.
func (s *search) repeat(again spot) optimizer.Suggestion {
	suggestion := s.pick(again)
	suggestion.Repeat = true
	suggestion.Reasons.Note = "evaluated again: was it good, or lucky?"
	s.replicas.done++
	s.replicas.probed = true
	return suggestion
}

// note says whether the point is expected to beat the incumbent by its mean or because
// of its uncertainty, and why else it was picked.
func (s *search) note(why string, mean []float64) string {
	note := "could beat the best point so far: the model is unsure there"
	if bayes.Average(mean) < bayes.Average(s.known.Incumbents) {
		note = "expected to beat the best point so far"
	}
	if why != "" {
		note += "; " + why
	}
	return note
}

// finite returns v, or nil if it is too large for a float64.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
