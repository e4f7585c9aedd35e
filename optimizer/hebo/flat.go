package hebo

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// Accuracies of few samples, and parameters that have no effect in a part of the space,
// make an objective that is flat over regions. A model of smooth functions does not
// expect that: between a plateau and the slope beside it, it promises improvements that
// never come, and it goes on refining a plateau that is no better anywhere.
const (
	// tiedPoints nearby points of the same value make a plateau of a noisy objective.
	tiedPoints = 3
	// fewLevels is the largest number of values of a parameter whose values are held
	// apart: points are compared with those that have the same one.
	fewLevels = 10
)

// flats holds the evaluated points and their values, each pair once. The nil *flats
// is that of an objective without two equal values.
type flats struct {
	points [][]float64
	values []float64
	noisy  bool
	// categorical and few are those columns of categories and of few values.
	categorical, few []bool
}

// newFlats returns nil where no two points have the same value, where the search
// enumerates all points or does not use one acquisition function, and where the
// settings say that plateaus do not matter.
func (s *search) newFlats(noise surrogate.Noise) *flats {
	if !s.options.Plateaus || s.exact || s.options.Acquisition == MACE || s.options.Fantasy == Thompson {
		return nil
	}
	type evaluation struct {
		at    string
		value float64
	}
	f := &flats{noisy: noise == surrogate.Noisy}
	for _, c := range s.r.Encoding.Columns() {
		f.categorical = append(f.categorical, c.Categorical())
		f.few = append(f.few, c.Categorical() || c.Levels > 0 && c.Levels <= fewLevels)
	}
	seen, values := map[evaluation]bool{}, map[float64]bool{}
	for _, o := range s.r.Observations {
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		x := s.r.Encoding.Encode(o.Point)
		if e := (evaluation{surrogate.KeyOf(x), o.Values.First()}); !seen[e] {
			seen[e] = true
			values[e.value] = true
			f.points, f.values = append(f.points, x), append(f.values, e.value)
		}
	}
	if len(values) == len(f.values) {
		return nil
	}
	return f
}

// around reports whether the objective is taken for flat around x: without noise, the
// value of the evaluated point nearest to x is also that of another point; with noise,
// at least tiedPoints points beside x, and half of those, have the same value.
func (f *flats) around(x []float64) bool {
	if f == nil {
		return false
	}
	if f.noisy {
		return f.tiedBeside(x)
	}
	near := f.nearest(x)
	return near >= 0 && f.sharing(near) > 1
}

// nearest returns the evaluated point nearest to x among those that are comparable to
// it, -1 if there is none.
func (f *flats) nearest(x []float64) int {
	near, least := -1, math.Inf(1)
	for i, y := range f.points {
		if !f.comparable(x, y) {
			continue
		}
		var squares float64
		for c := range x {
			squares += (x[c] - y[c]) * (x[c] - y[c])
		}
		if squares < least {
			near, least = i, squares
		}
	}
	return near
}

// comparable reports whether two points agree in the parameters of few values.
func (f *flats) comparable(x, y []float64) bool {
	for i, few := range f.few {
		if few && x[i] != y[i] {
			return false
		}
	}
	return true
}

// sharing counts the points that are comparable to point i and have its value, i
// included.
func (f *flats) sharing(i int) int {
	count := 0
	for j, y := range f.points {
		if f.values[j] == f.values[i] && f.comparable(f.points[i], y) {
			count++
		}
	}
	return count
}

// tiedBeside reports whether at least tiedPoints of the points within samePoint of x in
// every coordinate, and at least half of them, have the same value.
func (f *flats) tiedBeside(x []float64) bool {
	tied := map[float64]int{}
	count, most := 0, 0
	for i, y := range f.points {
		if f.beside(x, y) {
			count++
			tied[f.values[i]]++
			most = max(most, tied[f.values[i]])
		}
	}
	return most >= tiedPoints && 2*most >= count
}

// beside reports whether two points are practically the same.
func (f *flats) beside(x, y []float64) bool {
	for i, categorical := range f.categorical {
		if math.Abs(x[i]-y[i]) > samePoint || categorical && x[i] != y[i] {
			return false
		}
	}
	return true
}

// avoid returns the places' values with −Inf for those where the objective is flat,
// unchanged where no other place is left.
func (f *flats) avoid(values []float64, places []place) []float64 {
	kept, left := append([]float64(nil), values...), false
	for i := range kept {
		if f.around(places[i].x) {
			kept[i] = math.Inf(-1)
		}
		left = left || !math.IsInf(kept[i], -1)
	}
	if !left {
		return values
	}
	return kept
}

// spread returns a place of the even spread where the objective is not known to be flat;
// ok is false where there is none, where evaluations are noisy, and after 2√n such
// points of n. Which place is best there is left to chance: the model, which has just
// chosen a plateau, is not asked.
func (s *search) spread(values []float64) (elsewhere spot, ok bool) {
	if s.flats.noisy || !fewEscapes(s.first+s.picked, s.memory.Escapes) {
		return elsewhere, false
	}
	for i, p := range s.places[:len(s.places)/2] {
		if !math.IsInf(values[i], -1) && !s.flats.around(p.x) {
			s.memory.Escapes++
			return spot{place: p, value: values[i], why: leftPlateau}, true
		}
	}
	return elsewhere, false
}

// leftPlateau is why a point was taken from the even spread.
const leftPlateau = "drawn from an even spread: the model's choice lies on a plateau, where other points gave the same value"
