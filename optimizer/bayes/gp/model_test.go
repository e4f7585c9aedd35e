package gp_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// sklearnCase is a posterior computed by scikit-learn in testdata/reference.py.
type sklearnCase struct {
	Name          string      `json:"name"`
	X             [][]float64 `json:"x"`
	Y             []float64   `json:"y"`
	At            [][]float64 `json:"at"`
	Lengths       []float64   `json:"lengths"`
	Signal        float64     `json:"signal"`
	Noise         float64     `json:"noise"`
	Mean          []float64   `json:"mean"`
	Variance      []float64   `json:"variance"`
	LogLikelihood float64     `json:"log_likelihood"`
	// BestLogLikelihood is the largest value that scikit-learn's optimiser found.
	BestLogLikelihood float64 `json:"best_log_likelihood"`
}

func sklearnCases(t *testing.T) []sklearnCase {
	t.Helper()
	data, err := os.ReadFile("testdata/sklearn.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []sklearnCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func dense(rows [][]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, row := range rows {
		m.SetRow(i, row)
	}
	return m
}

// hyper returns hyperparameters of a Matern52 in their natural units.
func hyper(signal, noise float64, lengths ...float64) gp.Hyperparameters {
	h := gp.Hyperparameters{Noise: noise}
	for _, l := range lengths {
		h.Kernel = append(h.Kernel, math.Log(l))
	}
	h.Kernel = append(h.Kernel, math.Log(signal))
	return h
}

func TestModelAgainstScikitLearn(t *testing.T) {
	for _, c := range sklearnCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			k := kernel.NewMatern52(kernel.Continuous(len(c.Lengths)))
			m, err := gp.Condition(k, hyper(c.Signal, c.Noise, c.Lengths...), dense(c.X), c.Y)
			if err != nil {
				t.Fatal(err)
			}
			mean, variance := m.Posterior(dense(c.At))
			near(t, "log marginal likelihood", []float64{m.LogMarginalLikelihood()}, []float64{c.LogLikelihood}, 1e-9)
			near(t, "mean", mean, c.Mean, 1e-9)
			near(t, "variance", variance, c.Variance, 1e-9)
		})
	}
}

// near reports values that differ by more than tolerance·(1 + |want|).
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

// sample returns n points of the unit cube with noisy standardised outcomes of
// a smooth function of their first two columns.
func sample(n, d int, seed uint64) (*mat.Dense, []float64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	x, y := mat.NewDense(n, d, nil), make([]float64, n)
	for i := range n {
		for c := range d {
			x.Set(i, c, rng.Float64())
		}
		y[i] = math.Sin(6*x.At(i, 0)) + x.At(i, min(1, d-1)) + 0.05*rng.NormFloat64()
	}
	z, _ := gp.Standardize(y)
	return x, z
}

func TestPosteriorDoesNotDependOnTheBatch(t *testing.T) {
	x, y := sample(90, 3, 1)
	at, _ := sample(150, 3, 2)
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(3)), hyper(1.2, 0.01, 0.3, 0.5, 2), x, y)
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(at)
	for i := range mean {
		one, v := m.Posterior(at.Slice(i, i+1, 0, 3))
		if one[0] != mean[i] || v[0] != variance[i] {
			t.Fatalf("point %d alone: %v, %v; among others %v, %v", i, one[0], v[0], mean[i], variance[i])
		}
	}
}

func TestPosteriorAtExactObservations(t *testing.T) {
	x, y := sample(20, 2, 3)
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(2)), hyper(1, 0, 0.3, 0.3), x, y)
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(x)
	near(t, "mean", mean, y, 1e-9)
	for _, v := range variance {
		if !(v > 0 && v < 1e-9) {
			t.Errorf("variance %v at an exact observation", v)
		}
	}
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	x, y := sample(300, 4, 4)
	at, _ := sample(200, 4, 5)
	k := kernel.NewMatern52(kernel.Continuous(4))
	run := func(cores int) ([]float64, []float64, gp.Hyperparameters) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		config := gp.DefaultConfig(4)
		config.Starts, config.Explore, config.Polish = 2, 2, 1
		r, err := gp.Fit(t.Context(), k, x, y, config, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		mean, variance := r.Model.Posterior(at)
		return mean, variance, r.Model.Hyperparameters()
	}
	mean1, variance1, hyper1 := run(1)
	mean3, variance3, hyper3 := run(3)
	near(t, "hyperparameters", hyper1.Kernel, hyper3.Kernel, 0)
	near(t, "mean", mean1, mean3, 0)
	near(t, "variance", variance1, variance3, 0)
}

func TestStandardize(t *testing.T) {
	for _, c := range []struct {
		name string
		y    []float64
		mean float64
		sd   float64
	}{
		{"plain", []float64{1, 2, 3}, 2, 1},
		{"one", []float64{7}, 7, 1},
		{"none", nil, 0, 1},
		{"equal", []float64{0.1, 0.1, 0.1}, 0.1, 1},
		{"huge", []float64{-1e300, 0, 1e300}, 0, 1e300},
		{"largest", []float64{-math.MaxFloat64, math.MaxFloat64}, 0, math.MaxFloat64},
		{"tiny", []float64{-1e-300, 0, 1e-300}, 0, 1e-300},
		{"smallest", []float64{0, 5e-324}, 0, 5e-324},
		{"far from zero", []float64{1e9, 1e9 + 2, 1e9 + 4}, 1e9 + 2, 2},
		{"rounding only", []float64{1, 1 + 2e-16, 1}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			z, s := gp.Standardize(c.y)
			for i, v := range z {
				if math.IsNaN(v) || math.Abs(v) > math.Sqrt(float64(len(z))) {
					t.Errorf("standardised %v", z)
				}
				if s.SD > 1e-300 { // smaller numbers have few digits
					near(t, "round trip", []float64{s.Mean + s.SD*v, c.y[i]/s.SD - s.Mean/s.SD}, []float64{c.y[i], v}, 1e-12)
				}
			}
			near(t, "mean", []float64{s.Mean / c.sd}, []float64{c.mean / c.sd}, 1e-12)
			near(t, "sd", []float64{s.SD / c.sd}, []float64{1}, 1e-12)
		})
	}
}
