package mcmc_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/mcmc"
)

// The moments and a quantile of a chain against those of the distribution, from gonum's
// distuv, for widths that are far too small and far too large.
func TestSliceAgainstKnownDistributions(t *testing.T) {
	type distribution interface {
		LogProb(x float64) float64
		Mean() float64
		StdDev() float64
		CDF(x float64) float64
	}
	for name, d := range map[string]distribution{
		"normal": distuv.Normal{Mu: 3, Sigma: 0.5},
		"gamma":  distuv.Gamma{Alpha: 3, Beta: 2},
		"beta":   distuv.Beta{Alpha: 2, Beta: 5},
	} {
		for _, width := range []float64{0.05, 1, 50} {
			rng := rand.New(rand.NewPCG(1, 2))
			const n = 40_000
			x := d.Mean()
			at := d.LogProb(x)
			xs, below := make([]float64, n), 0.0
			for i := range xs {
				x, at = mcmc.Slice(d.LogProb, x, at, width, rng)
				if at != d.LogProb(x) {
					t.Fatalf("%s: the density at %v is said to be %v, it is %v", name, x, at, d.LogProb(x))
				}
				xs[i] = x
				if x < d.Mean()-d.StdDev()/2 {
					below++
				}
			}
			mean, sd := stat.MeanStdDev(xs, nil)
			share := d.CDF(d.Mean() - d.StdDev()/2)
			if math.Abs(mean-d.Mean()) > 0.04*d.StdDev() || math.Abs(sd/d.StdDev()-1) > 0.04 || math.Abs(below/n-share) > 0.015 {
				t.Errorf("%s, width %v: %.4f ± %.4f and %.3f below; want %.4f ± %.4f and %.3f",
					name, width, mean, sd, below/n, d.Mean(), d.StdDev(), share)
			}
		}
	}
}

// With a normal likelihood the posterior is normal and known: for the prior N(0, I) and
// observations y = A·x + noise of variance s, its precision is I + AᵀA/s and its mean the
// covariance times Aᵀy/s (Bishop 2006, equations 3.50 and 3.51).
func TestEllipticalAgainstKnownPosterior(t *testing.T) {
	a := mat.NewDense(3, 4, []float64{1, 0.5, 0, -1, 0.2, -0.7, 1.5, 0, 0, 1, 1, 1})
	y := mat.NewVecDense(3, []float64{1, -2, 0.5})
	const s = 0.1
	log := func(x []float64) float64 {
		var r mat.VecDense
		r.MulVec(a, mat.NewVecDense(4, x))
		r.SubVec(&r, y)
		return -mat.Dot(&r, &r) / (2 * s)
	}
	var precision, covariance mat.Dense
	precision.Mul(a.T(), a)
	precision.Scale(1/s, &precision)
	for i := range 4 {
		precision.Set(i, i, precision.At(i, i)+1)
	}
	if err := covariance.Inverse(&precision); err != nil {
		t.Fatal(err)
	}
	var mean mat.VecDense
	mean.MulVec(a.T(), y)
	mean.ScaleVec(1/s, &mean)
	mean.MulVec(&covariance, &mean)

	rng := rand.New(rand.NewPCG(3, 4))
	const n = 100_000
	x := make([]float64, 4)
	at := log(x)
	columns := make([][]float64, 4)
	for range n {
		if at = mcmc.Elliptical(log, x, at, rng); at != log(x) {
			t.Fatalf("the likelihood at %v is said to be %v, it is %v", x, at, log(x))
		}
		for i, v := range x {
			columns[i] = append(columns[i], v)
		}
	}
	for i := range columns {
		if got, want := stat.Mean(columns[i], nil), mean.AtVec(i); math.Abs(got-want) > 0.04 {
			t.Errorf("mean %d: %.3f, want %.3f", i, got, want)
		}
		for j := range columns {
			if got, want := stat.Covariance(columns[i], columns[j], nil), covariance.At(i, j); math.Abs(got-want) > 0.04 {
				t.Errorf("covariance %d, %d: %.3f, want %.3f", i, j, got, want)
			}
		}
	}
}

// A chain stays where it is when no other place has any density.
func TestChainsStayOnAPoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	only := func(x float64) float64 {
		if x == 0.5 {
			return 0
		}
		return math.Inf(-1)
	}
	if x, at := mcmc.Slice(only, 0.5, 0, 1, rng); x != 0.5 || at != 0 {
		t.Errorf("the chain is at %v, with %v", x, at)
	}
	x := []float64{0.5}
	if at := mcmc.Elliptical(func(x []float64) float64 { return only(x[0]) }, x, 0, rng); x[0] != 0.5 || at != 0 {
		t.Errorf("the chain is at %v, with %v", x, at)
	}
}
