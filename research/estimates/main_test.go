package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/uhe"
)

// The covariances of draws are those of the Matérn-5/2 kernel.
func TestDrawsHaveTheKernel(t *testing.T) {
	const draws = 3000
	others := [][2]float64{{0.5, 0.5}, {0.6, 0.5}, {0.5, 0.9}, {0.3, 0.1}}
	sums := make([]float64, len(others))
	rng := rand.New(rand.NewPCG(1, 1))
	for range draws {
		f := draw(rng)
		at := f(0.5, 0.5)
		for i, x := range others {
			sums[i] += at * f(x[0], x[1]) / draws
		}
	}
	for i, x := range others {
		r := math.Sqrt(5) * math.Hypot((x[0]-0.5)/length1, (x[1]-0.5)/length2)
		// The standard error is at most √2/√3000 = 0.026.
		if want := signal * signal * (1 + r + r*r/3) * math.Exp(-r); math.Abs(sums[i]-want) > 0.1 {
			t.Errorf("the covariance of (0.5, 0.5) and %v is %.3f, want %.3f", x, sums[i], want)
		}
	}
}

// By hand: the lengthscales are e and e⁻² times the true ones, which is √((1+4)/2), the
// others e⁻³ and e times.
func TestDeviation(t *testing.T) {
	e := &uhe.Estimate{Lengthscales: []float64{length1 * math.E, length2 / math.Exp(2)}, SD: signal / math.Exp(3), Noise: noise * math.E}
	got := deviate(e, nil, nil, 0.25)
	for i, want := range map[int]float64{0: math.Sqrt(2.5), 1: 3, 2: 1, 4: 0.25} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("deviation %d is %v, want %v", i, got[i], want)
		}
	}
	if line := row([]deviation{{1, 2, 3, 4, 5}, {3, 2, 3, 4, 6}}); line != " 2.00 ± 1.00 | 2.00 ± 0.00 | 3.00 ± 0.00 | 4.00 ± 0.00 | 5.50 "+
		"± 0.50 |" {
		t.Errorf("printed %q", line)
	}
}

// A whole run, short, with every method.
func TestPlay(t *testing.T) {
	o := draw(rand.New(rand.NewPCG(1, 2)))
	for _, c := range contenders() {
		found, err := play(t.Context(), c, o, uhe.ShapeRate, 1, []int{6, 9})
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: %v, %v", c.name, found, err)
		}
		for _, d := range found {
			for i, v := range d {
				if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && i < 4 {
					t.Errorf("%s: %v", c.name, d)
				}
			}
		}
	}
}
