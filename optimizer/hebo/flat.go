package hebo

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// Around a place, the objective is taken for flat where at least tiedPoints points
// within samePoint in every coordinate gave exactly the same value, and no more
// others did not. Accuracies of few samples are like that: a model of smooth
// functions that is sure of such a place goes on refining a point that is no better
// than those beside it.
const tiedPoints = 3

// flats holds the evaluated points and their values, each pair once. The nil one is
// that of an objective that is flat nowhere.
type flats struct {
	columns []optimizer.Column
	points  [][]float64
	values  []float64
}

// newFlats returns nil where too few points have the same value, where all points
// can be enumerated or are not chosen by one acquisition function, and where plateaus
// are not to be avoided.
func (s *search) newFlats() *flats {
	if !s.options.Plateaus || s.exact || s.options.Acquisition == MACE || s.options.Fantasy == Thompson {
		return nil
	}
	type evaluation struct {
		at    string
		value float64
	}
	f, tied, seen := &flats{columns: s.r.Encoding.Columns()}, ties{}, map[evaluation]bool{}
	for _, o := range s.r.Observations {
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		x := s.r.Encoding.Encode(o.Point)
		if e := (evaluation{surrogate.KeyOf(x), o.Values.First()}); !seen[e] {
			seen[e] = true
			f.points, f.values = append(f.points, x), append(f.values, o.Values.First())
			tied.add(o.Values.First())
		}
	}
	if tied.most < tiedPoints {
		return nil
	}
	return f
}

// ties counts equal values.
type ties struct {
	of   map[float64]int
	most int
}

func (t *ties) add(value float64) {
	if t.of == nil {
		t.of = map[float64]int{}
	}
	t.of[value]++
	t.most = max(t.most, t.of[value])
}

// around reports whether the objective is flat around x.
func (f *flats) around(x []float64) bool {
	if f == nil {
		return false
	}
	var tied ties
	count := 0
	for i, y := range f.points {
		if f.beside(x, y) {
			tied.add(f.values[i])
			count++
		}
	}
	return tied.most >= tiedPoints && 2*tied.most >= count
}

// beside reports whether two points are practically the same.
func (f *flats) beside(x, y []float64) bool {
	for i, c := range f.columns {
		if math.Abs(x[i]-y[i]) > samePoint || c.Categorical() && x[i] != y[i] {
			return false
		}
	}
	return true
}

// avoid returns the values with −Inf for those of flat places, unchanged where no
// other place is left.
func (f *flats) avoid(values []float64, flat []bool) []float64 {
	if f == nil {
		return values
	}
	kept, left := append([]float64(nil), values...), false
	for i := range kept {
		if flat[i] {
			kept[i] = math.Inf(-1)
		}
		left = left || !math.IsInf(kept[i], -1)
	}
	if !left {
		return values
	}
	return kept
}
