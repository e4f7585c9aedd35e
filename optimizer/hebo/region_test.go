package hebo

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// The region's length by the rules of TuRBO-1: doubled after three successes in a
// row, at most 1.6; halved after max(4/q, d/q) failures; begun again below 2⁻⁷.
func TestTrustRegionLength(t *testing.T) {
	falling := func(n int) []float64 {
		y := make([]float64, n)
		for i := range y {
			y[i] = -float64(i * i)
		}
		return y
	}
	flat := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	for _, c := range []struct {
		name          string
		y             []float64
		parallel, dim int
		want          float64
	}{
		{"nothing yet", nil, 1, 6, 0.8},
		{"two successes", falling(2), 1, 6, 0.8},
		{"three successes", falling(3), 1, 6, 1.6},
		{"six successes", falling(6), 1, 6, 1.6},
		{"the first and five failures", flat(6), 1, 6, 0.8},
		{"the first and six failures", flat(7), 1, 6, 0.4},
		{"in rounds of two, three of failures", flat(8), 2, 6, 0.4},
		{"few columns fail four times", flat(5), 1, 2, 0.4},
		{"six halvings", flat(1 + 6*6), 1, 6, 0.8 / 64},
		{"seven, and it begins again", flat(1 + 7*6), 1, 6, 0.8},
		{"a gain that is too small", append(flat(6), 1-5e-4), 1, 6, 0.4},
	} {
		if got := length(c.y, c.parallel, c.dim); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: length %v, want %v", c.name, got, c.want)
		}
	}
}

// A trust region holds its points, and its sides follow the lengthscales.
func TestTrustRegionHoldsItsPoints(t *testing.T) {
	s := observed(t, 40)
	r := &optimizer.Request{Problem: &s.Problem, N: 1, Rand: optimizer.NewRand(1, 1), Encoding: optimizer.NewEncoding(s.Problem.Space)}
	o := surrogate.DefaultOptions()
	m, err := surrogate.Fit(t.Context(), surrogate.Observe(r.Problem, r.Encoding, o), o, nil, r.Rand)
	if err != nil {
		t.Fatal(err)
	}
	region := newRegion(r, bayes.Gaussian(m.GP), m.Data)
	next := region.stream(r)
	x := mat.NewDense(1, r.Encoding.Dim(), nil).RawRowView(0)
	for range 500 {
		next(x)
		for i, v := range x {
			if v < region.lo[i] || v > region.hi[i] {
				t.Fatalf("coordinate %d of %v is outside of %v to %v", i, x, region.lo[i], region.hi[i])
			}
		}
	}
	scales := m.GP.Hyperparameters().Kernel
	for i := range x {
		for j := range x {
			whole := func(k int) bool { return region.lo[k] > 0 && region.hi[k] < 1 }
			if !whole(i) || !whole(j) {
				continue
			}
			ratio := math.Log((region.hi[i] - region.lo[i]) / (region.hi[j] - region.lo[j]))
			if math.Abs(ratio-(scales[i]-scales[j])) > 1e-9 {
				t.Errorf("sides %d and %d differ by %v, their lengthscales by %v, as logarithms", i, j, ratio, scales[i]-scales[j])
			}
		}
	}
}

func TestTrustRegionFindsTheMinimum(t *testing.T) {
	o := New(options(func(o *Options) { o.TrustRegion = true }))
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 5)
	s.Run(40, 4, bowl)
	if best := s.Best(); best > 1e-4 {
		t.Errorf("the best value is %.3g, the minimum 0", best)
	}
}
