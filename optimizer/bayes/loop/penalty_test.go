package loop

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
)

// The local penalty's gradient against finite differences of its value.
func TestPenaltyGradient(t *testing.T) {
	p := &penalty{slope: 3, lowest: -1.2}
	p.add([]float64{0.2, 0.7, 0.5}, 0.3, 0.04)
	p.add([]float64{0.8, 0.1, 0.5}, -1, 0.5)
	p.add([]float64{0.21, 0.69, 0.5}, 2, 1e-4)
	for _, x := range [][]float64{{0.3, 0.6, 0.4}, {0.9, 0.9, 0.9}, {0.21, 0.7, 0.51}, {0.75, 0.15, 0.45}} {
		want := fd.Gradient(nil, func(x []float64) float64 { return p.value(nil, x) }, x, &fd.Settings{Formula: fd.Central})
		got := make([]float64, len(x))
		value := p.value(got, x)
		if !floats.EqualApprox(got, want, 1e-5*(1+floats.Norm(want, 2))) || value != p.value(nil, x) {
			t.Errorf("at %v: gradient %v, by differences %v", x, got, want)
		}
	}
	if value := p.value(make([]float64, 3), []float64{0.2, 0.7, 0.5}); math.IsNaN(value) {
		t.Error("the penalty at a pending point is no number")
	}
}
