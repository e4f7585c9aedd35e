package loop

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func number(v float64) *float64 { return &v }

func mixedPriors(t testing.TB) *Priors {
	space := optimizertest.Space(t, []study.Parameter{
		{
			Name: "a", Type: study.Float, Min: number(1e-4), Max: number(1), Scale: study.Log,
			Prior: &study.Prior{Mean: number(1e-3), SD: number(0.4)},
		},
		{Name: "b", Type: study.Categorical, Values: []any{"x", "y", "z"}, Prior: &study.Prior{Weights: []float64{1, 4, 5}}},
		{Name: "c", Type: study.Float, Min: number(0), Max: number(2)},
		{
			Name: "d", Type: study.Float, Min: number(0), Max: number(1), When: map[string][]any{"b": {"x"}},
			Prior: &study.Prior{Mean: number(0.25), SD: number(0.1)},
		},
	}, nil)
	return NewPriors(optimizer.NewEncoding(space))
}

// The density of a point is the product of its parameters' densities, relative to the
// maximum. Inactive parameters are left out.
func TestPriors(t *testing.T) {
	b := mixedPriors(t)
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		// a's mean is at a quarter of four powers of ten, its sd a tenth of them.
		{[]float64{0.25, 5. / 6, 0, 0.5}, 0},
		{[]float64{0.45, 5. / 6, 1, 0.5}, -2},
		{[]float64{0.25, 0.5, 1, 0.5}, math.Log(0.8)},
		{[]float64{0.25, 1. / 6, 1, 0.25}, math.Log(0.2)},
		{[]float64{0.25, 1. / 6, 1, 0.45}, math.Log(0.2) - 2},
	} {
		if got := b.Log(nil, c.x, 0); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("at %v: log density %v, want %v", c.x, got, c.want)
		}
	}
	if got := b.Log(nil, []float64{1, 1. / 6, 1, 1}, 0); got < math.Log(leastDensity)-1e-9 {
		t.Errorf("log density %v far away, the least is %v", got, math.Log(leastDensity))
	}
	if none := NewPriors(optimizer.NewEncoding(optimizertest.Mixed(t))); none != nil || none.Log(nil, nil, 0) != 0 {
		t.Error("priors of a space without priors")
	}
}

func TestPriorsGradient(t *testing.T) {
	b := mixedPriors(t)
	for _, x := range [][]float64{{0.3, 5. / 6, 0.4, 0.5}, {0.3, 1. / 6, 0.4, 0.3}, {0.99, 1. / 6, 0.4, 0.9}} {
		at := func(x []float64) float64 { return 1.5 * b.Log(nil, x, 0) }
		want := fd.Gradient(nil, at, x, &fd.Settings{Formula: fd.Central})
		got := make([]float64, len(x))
		b.Log(got, x, 1.5)
		if !floats.EqualApprox(got, want, 1e-5) {
			t.Errorf("at %v: gradient %v, by differences %v", x, got, want)
		}
	}
}

func TestQuantileOfNarrowPriors(t *testing.T) {
	for _, c := range []columnPrior{{mean: 0, sd: 1e-300}, {mean: 1, sd: 1e-12}, {mean: 0.5, sd: 1e300}, {mean: 0.3, sd: 1e-3}} {
		for _, u := range []float64{0, 1e-300, 0.5, 1 - 1e-16, 1} {
			if v := c.quantile(u); !(v >= 0 && v <= 1) {
				t.Errorf("quantile %v of %+v is %v", u, c, v)
			}
		}
	}
}
