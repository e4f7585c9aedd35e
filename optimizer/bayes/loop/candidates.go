package loop

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// goodPoints is how many of the best observations candidates are drawn around.
	goodPoints = 5
	// minCandidates is how many there are at least, even if they must be drawn by the
	// sampler, which is slow where feasible points are rare.
	minCandidates = 16
)

// ChangedAtOnce is how many coordinates a step away from a good point changes on average
// (as in TuRBO; Eriksson et al. 2019).
const ChangedAtOnce = 20

// scales are the standard deviations of the steps away from good points, in the unit cube: one
// is chosen for each candidate, since it is not known how close the optimum is.
var scales = [...]float64{0.2, 0.05, 0.01}

// Place is a point that can be suggested, and its coordinates.
type Place struct {
	Point study.Point
	X     []float64
}

// candidates returns the places where a search begins. In a small finite space these
// are all remaining places; otherwise half are spread over the space and half come from
// around. Each is feasible and not taken.
func candidates(r *optimizer.Request, count int, b *Priors, around optimizer.Stream, taken func(x []float64) bool) []Place {
	if r.Remaining != nil && len(r.Remaining) <= 2*count {
		places := make([]Place, len(r.Remaining))
		for i, p := range r.Remaining {
			places[i] = Place{p, r.Encoding.Encode(p)}
		}
		return places
	}
	spread := SpreadOut(r.Encoding.Dim(), r.Rand)
	places := Gather(nil, r, count/2, spread, taken)
	if b != nil {
		// The places with high priors may be few.
		believed := func(x []float64) { spread(x); b.Draw(x) }
		places = Gather(places[:len(places)/2], r, count/2, believed, taken)
	}
	places = Gather(places, r, count, around, taken)
	for len(places) < minCandidates {
		// Feasible points are rare: try harder to find some.
		p, err := r.Sampler.Draw(spread)
		if err != nil {
			break
		}
		at := r.Encoding.Encode(p)
		if taken(at) {
			break
		}
		places = append(places, Place{p, at})
	}
	return places
}

// Gather tries one point of the stream for each place missing to count, and adds those
// that are feasible and not taken.
func Gather(places []Place, r *optimizer.Request, count int, next optimizer.Stream, taken func(x []float64) bool) []Place {
	x := make([]float64, r.Encoding.Dim())
	for range count - len(places) {
		next(x)
		p := r.Encoding.Decode(x)
		if !r.Space.Feasible(p) {
			continue
		}
		if at := r.Encoding.Encode(p); !taken(at) {
			places = append(places, Place{p, at})
		}
	}
	return places
}

// SpreadOut returns a freshly scrambled Sobol sequence.
func SpreadOut(dim int, rng *rand.Rand) optimizer.Stream {
	sequence, err := design.NewScrambledSobol(dim, rng.Uint64())
	if err != nil {
		return optimizer.Uniform(rng)
	}
	var index uint32
	return func(x []float64) {
		sequence.At(x, index)
		index++
	}
}

// around returns a stream of points near the best rows of the data.
func around(r *optimizer.Request, d *surrogate.Data, best []int) optimizer.Stream {
	rng, columns := r.Rand, r.Encoding.Columns()
	probability := min(1, ChangedAtOnce/float64(len(columns)))
	return func(x []float64) {
		copy(x, d.X.RawRowView(best[rng.IntN(len(best))]))
		scale := scales[rng.IntN(len(scales))]
		always := rng.IntN(len(x))
		for i, c := range columns {
			if i != always && rng.Float64() >= probability {
				continue
			}
			x[i] = reflect(Step(c, x[i], scale, i == always, rng))
		}
	}
}

// Step moves a coordinate by a normal step of a standard deviation, possibly out of the
// unit interval. A category changes rarely unless it must, so that most candidates keep the
// good ones.
func Step(c optimizer.Column, u, sd float64, must bool, rng *rand.Rand) float64 {
	switch {
	case c.Categorical():
		if must || rng.Float64() < sd {
			return rng.Float64()
		}
		return u
	case c.Levels > 0:
		return u + rng.NormFloat64()*max(sd, 0.5/float64(c.Levels))
	}
	return u + rng.NormFloat64()*sd
}

// reflect folds a coordinate outside [0,1] back at the bound.
func reflect(u float64) float64 {
	u = math.Abs(math.Remainder(u, 2))
	return min(u, 1)
}

// Lowest returns the places of the count lowest values, best first.
func Lowest(y []float64, count int) []int {
	order := make([]int, len(y))
	floats.ArgsortStable(slices.Clone(y), order)
	return order[:min(count, len(order))]
}

// Rows returns a matrix of the places.
func Rows(places []Place) *mat.Dense {
	m := mat.NewDense(len(places), len(places[0].X), nil)
	for i, p := range places {
		m.SetRow(i, p.X)
	}
	return m
}
