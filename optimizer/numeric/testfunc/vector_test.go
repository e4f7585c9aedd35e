package testfunc

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// A thousand points of a front's formula come close to the hypervolume, and no point exceeds
// it.
func TestVectorsReachTheirHypervolume(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, f := range Vectors() {
		var points [][]float64
		x := make([]float64, len(f.Lower))
		for i := range 1000 {
			for k := range x {
				x[k] = 0
			}
			switch {
			case strings.HasPrefix(f.Name, "zdt"):
				x[0] = float64(i) / 999
			case f.Name == "dtlz2-6-2":
				x = []float64{float64(i) / 999, 0.5, 0.5, 0.5, 0.5, 0.5}
			case f.Name == "dtlz2-6-3":
				x = []float64{float64(i%32) / 31, float64(i/32) / 31, 0.5, 0.5, 0.5, 0.5}
			default:
				for k := range x {
					x[k] = rng.Float64()
				}
			}
			points = append(points, f.Value(x))
		}
		least := 0.95
		if f.Name == "branin-currin" || strings.HasSuffix(f.Name, "-5") {
			least, points = 0, points[:100] // their fronts have no formula, or too many ends
		}
		share := pareto.Hypervolume(points, f.Reference) / f.Hypervolume
		if share < least || share > 1 {
			t.Errorf("%s: the points have %v of the hypervolume", f.Name, share)
		}
	}
}

// The minimum of Branin's function at the known place, and Currin's value there by hand.
func TestBraninCurrin(t *testing.T) {
	f := braninCurrin()
	at := f.Value([]float64{(math.Pi + 5) / 15, 2.275 / 15})
	if math.Abs(at[0]-0.39788735772973816) > 1e-9 {
		t.Errorf("Branin's minimum is %v", at[0])
	}
	// x₂ = 0: the first factor is 1, and 13.77 is the function's published maximum, near x₁ = 0.2.
	if v := f.Value([]float64{0.2, 0})[1]; math.Abs(v-(2300*0.008+1900*0.04+2092*0.2+60)/(100*0.008+500*0.04+4*0.2+20)) > 1e-12 {
		t.Errorf("Currin's function is %v", v)
	}
}

// At the middle of the last coordinates the values of DTLZ2 lie on the unit sphere.
func TestDTLZ2IsASphere(t *testing.T) {
	for _, f := range Vectors() {
		if !strings.HasPrefix(f.Name, "dtlz2") {
			continue
		}
		x := slices.Repeat([]float64{0.5}, len(f.Lower))
		for k := range len(f.Reference) - 1 {
			x[k] = 0.3 + 0.1*float64(k)
		}
		var square float64
		for _, v := range f.Value(x) {
			square += v * v
		}
		if math.Abs(square-1) > 1e-12 {
			t.Errorf("%s: the radius at the front is %v", f.Name, math.Sqrt(square))
		}
	}
}
