package hebo

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// incumbentsAmong is how many of the lowest observations are looked at for the
// lowest posterior mean: that of a worse observation is hardly ever it.
const incumbentsAmong = 64

// improved is how many points of one request are searched for beyond the
// candidates: who asks for more at once has so little information for each that
// the best candidate is as good.
const improved = 64

// search picks the points of one request, one after another.
type search struct {
	r         *optimizer.Request
	model     *surrogate.Model
	options   Options
	fantasies *gp.Fantasies
	criterion criterion
	exact     bool // the places are all there are
	places    []place
	// at holds the incumbents' rows, then the places'.
	at        *gp.Candidates
	evaluated int // rows of incumbents in at
	picked    int
	// floor is, for each draw, the lowest mean at a point picked so far, as of
	// when it was picked.
	floor   []float64
	pending int
}

// newSearch prepares the search for the points after batch.
func (o proposer) newSearch(r *optimizer.Request, m *surrogate.Model, batch []optimizer.Suggestion) *search {
	s := &search{r: r, model: m, options: o.options, pending: len(r.Pending) + len(batch)}
	draws := 1
	if o.options.Fantasy == Draws {
		draws = o.options.Draws
	}
	s.fantasies = m.GP.Fantasies(draws)
	s.criterion = criterion{kind: o.options.Acquisition, kappa: o.options.Kappa, incumbents: make([]float64, draws)}
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
	s.places = candidates(r, m.Data, o.options.Candidates)
	s.exact = r.Remaining != nil && len(s.places) == len(r.Remaining)
	s.evaluated = len(known)
	s.at = s.fantasies.Candidates(rows(append(known, s.places...)))
	return s
}

// fantasise adds points whose values are not known to the model.
func (s *search) fantasise(x *mat.Dense) {
	switch s.options.Fantasy {
	case None:
	case Draws:
		n, _ := x.Dims()
		s.fantasies.Draw(x, normals(n, s.fantasies.Draws(), s.r.Rand))
	default:
		s.fantasies.Believe(x)
	}
}

// next picks the best point; ok is false where the search found none.
func (s *search) next() (suggestion optimizer.Suggestion, ok bool) {
	mean, variance := s.at.Posterior()
	s.findIncumbents(mean)
	values := make([]float64, len(s.places))
	for i := range values {
		row := s.evaluated + i
		values[i] = math.Inf(-1)
		if !s.r.Sampler.TakenAt(s.places[i].x) {
			values[i] = s.criterion.value(mean.RawRowView(row), variance[row])
		}
	}
	starts := s.starts(values)
	if len(starts) == 0 {
		return suggestion, false
	}
	best := starts[0]
	if !s.exact && s.picked < improved {
		best = s.improve(starts)
	}
	return s.pick(best), true
}

// spot is a place with its value.
type spot struct {
	place
	value float64
}

// starts returns the best places, best first. Half of them are the best of the
// first half of the places and half those of the second, which differ in kind:
// a search that started around the best points alone would stay there.
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
				starts = append(starts, spot{s.places[lo+i], values[lo+i]})
			}
		}
	}
	add(0, middle, max(1, s.options.Restarts/2))
	add(middle, len(values), (s.options.Restarts+1)/2)
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

// findIncumbents sets the criterion's incumbents from the posterior means at
// the known points.
func (s *search) findIncumbents(mean *mat.Dense) {
	copy(s.criterion.incumbents, s.floor)
	for i := range s.evaluated {
		lower(s.criterion.incumbents, mean.RawRowView(i))
	}
}

// lower takes each of dst's values down to that of row.
func lower(dst, row []float64) {
	for i, v := range row {
		dst[i] = min(dst[i], v)
	}
}

// pick makes a suggestion of the spot, and has the model believe in it.
func (s *search) pick(best spot) optimizer.Suggestion {
	x := rows([]place{best.place})
	at := s.fantasies.Candidates(x)
	mean, variance := at.Posterior()
	suggestion := optimizer.Suggestion{Point: best.point, Source: optimizer.SourceModel}
	suggestion.Reasons = optimizer.Reasons{
		Mean:        finite(s.model.Data.Mean(average(mean.RawRowView(0)))),
		SD:          finite(s.model.Data.SD(average(mean.RawRowView(0)), variance[0])),
		Acquisition: map[string]float64{s.criterion.name(): best.value},
		Pending:     s.pending,
		Note:        s.note(mean.RawRowView(0)),
	}
	s.pending++
	s.r.Sampler.Take(best.point)
	s.picked++
	if s.options.Fantasy != None {
		s.fantasise(x)
		mean, _ = at.Posterior() // in each draw, given the value that was drawn
		lower(s.floor, mean.RawRowView(0))
	}
	return suggestion
}

// note says whether the point is expected to beat the incumbent by its mean
// already or for its uncertainty.
func (s *search) note(mean []float64) string {
	if average(mean) < average(s.criterion.incumbents) {
		return "expected to beat the best point so far"
	}
	return "could beat the best point so far: the model is unsure there"
}

// finite returns v, nil where it is too large for a float64.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
