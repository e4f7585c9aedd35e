package hebo

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// Accuracies measured on few samples, and parameters without effect in part of the
// space, make an objective flat over regions. A model of smooth functions does not
// expect that: between a plateau and the slope beside it, it promises improvements that
// never come, and it keeps refining a plateau that is equally good everywhere.
const (
	// samePoint is how far apart, in each coordinate, two points are that count as one place
	// of a noisy objective.
	samePoint = 0.05
	// tiedPoints nearby points with the same value make a plateau of a noisy objective.
	tiedPoints = 3
	// fewLevels is the largest number of values at which a parameter counts as
	// categorical here: only points with the same value of it are compared.
	fewLevels = 10
)

// flats holds the distinct pairs of an evaluated point and its value. It is nil if no
// two values of the objective are equal.
type flats struct {
	points [][]float64
	values []float64
	noisy  bool
	// categorical are the columns of categories, few those of parameters with few
	// values.
	categorical, few []bool
}

// newFlats returns nil if no two points have the same value, if the search enumerates
// all points or does not use one acquisition function, or if the settings disable
// plateaus.
func (s *search) newFlats(noise surrogate.Noise) *flats {
	if !s.options.Plateaus || s.Exact || s.options.Acquisition == MACE {
		return nil
	}
	type evaluation struct {
		at    string
		value float64
	}
	f := &flats{noisy: noise == surrogate.Noisy}
	for _, c := range s.Request.Encoding.Columns() {
		f.categorical = append(f.categorical, c.Categorical())
		f.few = append(f.few, c.Categorical() || c.Levels > 0 && c.Levels <= fewLevels)
	}
	seen, values := map[evaluation]bool{}, map[float64]bool{}
	for _, o := range s.Request.Observations {
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		x := s.Request.Encoding.Encode(o.At())
		if e := (evaluation{optimizer.KeyOf(x), o.Values.First()}); !seen[e] {
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

// around reports whether the objective counts as flat around x. Without noise, it does
// if the evaluated point nearest to x has the same value as another point. With noise,
// it does if at least tiedPoints points beside x, and half of all points beside it,
// have the same value.
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

// nearest returns the nearest evaluated point that is comparable to x, or -1 if there
// is none.
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

// comparable reports whether two points agree in the parameters with few values.
func (f *flats) comparable(x, y []float64) bool {
	for i, few := range f.few {
		if few && x[i] != y[i] {
			return false
		}
	}
	return true
}

// sharing counts the points that are comparable to point i and have the same value,
// including i.
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

// beside reports whether two points are within samePoint of each other in every
// coordinate.
func (f *flats) beside(x, y []float64) bool {
	for i, categorical := range f.categorical {
		if math.Abs(x[i]-y[i]) > samePoint || categorical && x[i] != y[i] {
			return false
		}
	}
	return true
}

// avoid returns the places' values with −Inf for places where the objective is flat. If
// that leaves no place, it returns the values unchanged.
func (f *flats) avoid(values []float64, places []loop.Place) []float64 {
	kept, left := append([]float64(nil), values...), false
	for i := range kept {
		if f.around(places[i].X) {
			kept[i] = math.Inf(-1)
		}
		left = left || !math.IsInf(kept[i], -1)
	}
	if !left {
		return values
	}
	return kept
}

// mayEscape reports whether fewer than 2√n of n trials were taken from an even spread. Their
// share falls like 1/√n: if many of them found nothing, another one rarely will.
func mayEscape(n, escapes int) bool { return escapes*escapes < 4*n }

// spread returns a random place of the even spread where the objective is not known to
// be flat. The model is not asked, since it has just chosen a plateau. ok is false if
// there is no such place, if evaluations are noisy, or if 2√n of n points were chosen
// like this already.
func (s *search) spread(values []float64) (elsewhere loop.Spot, ok bool) {
	if s.flats.noisy || !mayEscape(s.First+s.Picked, s.memory.Escapes) {
		return elsewhere, false
	}
	for i, p := range s.Places[:len(s.Places)/2] {
		if !math.IsInf(values[i], -1) && !s.flats.around(p.X) {
			s.memory.Escapes++
			return loop.Spot{Place: p, Value: values[i], Why: leftPlateau}, true
		}
	}
	return elsewhere, false
}

// leftPlateau is the reason given for a point taken from the even spread.
const leftPlateau = "drawn from an even spread: the model's choice lies on a plateau, where other points gave the same value"
