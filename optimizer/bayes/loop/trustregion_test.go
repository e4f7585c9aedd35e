package loop

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
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
	inf := math.Inf(1)
	for _, c := range []struct {
		name                   string
		y                      []float64
		parallel, dim, initial int
		side                   float64
		since                  int
	}{
		{"nothing yet", nil, 1, 6, 0, 0.8, 0},
		{"two successes", falling(2), 1, 6, 0, 0.8, 0},
		{"three successes", falling(3), 1, 6, 0, 1.6, 0},
		{"six successes", falling(6), 1, 6, 0, 1.6, 0},
		{"the first and five failures", flat(6), 1, 6, 0, 0.8, 0},
		{"the first and six failures", flat(7), 1, 6, 0, 0.4, 0},
		{"in rounds of two, three of failures", flat(8), 2, 6, 0, 0.4, 0},
		{"few columns fail four times", flat(5), 1, 2, 0, 0.4, 0},
		{"six halvings", flat(1 + 6*6), 1, 6, 0, 0.8 / 64, 0},
		{"seven, and it begins again", flat(1 + 7*6), 1, 6, 0, 0.8, 43},
		{"a gain that is too small", append(flat(6), 1-5e-4), 1, 6, 0, 0.4, 0},
		{"a design that falls", falling(5), 1, 6, 5, 0.8, 0},
		{"a design and three successes", falling(8), 1, 6, 5, 1.6, 0},
		{"a design and six failures", flat(11), 1, 6, 5, 0.4, 0},
		{"after a design, seven halvings, and a second design", flat(5 + 7*6 + 5), 1, 6, 5, 0.8, 47},
		{"after the second design, six failures", flat(5 + 7*6 + 5 + 6), 1, 6, 5, 0.4, 47},
		{"a design of which none completed", []float64{inf, inf, 2, 1, 0, inf}, 1, 6, 2, 1.6, 0},
		{"nothing has completed", slices.Repeat([]float64{inf}, 8), 1, 6, 2, 0.4, 0},
	} {
		if side, since := Side(c.y, c.parallel, c.dim, c.initial); math.Abs(side-c.side) > 1e-15 || since != c.since {
			t.Errorf("%s: side %v since %d, want %v since %d", c.name, side, since, c.side, c.since)
		}
	}
}

// A trust region holds its points, and its sides follow the lengthscales.
func TestTrustRegionHoldsItsPoints(t *testing.T) {
	const dim = 4
	s := optimizertest.NewSession(t, random.New(), optimizertest.Cube(t, dim, 0, 1), 1)
	s.Run(40, 1, func(p study.Point) float64 {
		var sum float64
		for i := range dim {
			x := p[fmt.Sprintf("x%d", i+1)].(float64)
			sum += float64(i*i) * (x - 0.5) * (x - 0.5)
		}
		return sum
	})
	r := &optimizer.Request{Problem: &s.Problem, N: 1, Rand: optimizer.NewRand(1, 1), Encoding: optimizer.NewEncoding(s.Problem.Space)}
	o := surrogate.DefaultOptions()
	m, err := surrogate.Fit(t.Context(), surrogate.Observe(r.Problem, r.Encoding, o), o, nil, r.Rand)
	if err != nil {
		t.Fatal(err)
	}
	region := NewRegion(bayes.Gaussian(m.GP), m.Data, startLength)
	next := region.Stream(r)
	x := mat.NewDense(1, r.Encoding.Dim(), nil).RawRowView(0)
	for range 500 {
		next(x)
		for i, v := range x {
			if v < region.Lo[i] || v > region.Hi[i] {
				t.Fatalf("coordinate %d of %v is outside of %v to %v", i, x, region.Lo[i], region.Hi[i])
			}
		}
	}
	scales := m.GP.Hyperparameters().Kernel
	for i := range x {
		for j := range x {
			whole := func(k int) bool { return region.Lo[k] > 0 && region.Hi[k] < 1 }
			if !whole(i) || !whole(j) {
				continue
			}
			ratio := math.Log((region.Hi[i] - region.Lo[i]) / (region.Hi[j] - region.Lo[j]))
			if math.Abs(ratio-(scales[i]-scales[j])) > 1e-9 {
				t.Errorf("sides %d and %d differ by %v, their lengthscales by %v, as logarithms", i, j, ratio, scales[i]-scales[j])
			}
		}
	}
}
