package gp_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// flat returns a configuration without priors, for maximum likelihood, with
// bounds as in testdata/reference.py.
func flat(d int) gp.Config {
	c := gp.DefaultConfig(d)
	for i := range c.Kernel {
		c.Kernel[i].Prior = gp.Flat{}
	}
	c.Noise.Prior = gp.Flat{}
	c.Starts, c.Explore, c.Polish = 8, 60, 60
	return c
}

// Without priors, a fit reaches the likelihood of scikit-learn's L-BFGS-B with twenty
// restarts.
func TestFitAgainstScikitLearn(t *testing.T) {
	for _, c := range sklearnCases(t) {
		if len(c.Y) < 10 {
			continue // the likelihood of one observation has no inner maximum
		}
		t.Run(c.Name, func(t *testing.T) {
			k := kernel.NewMatern52(kernel.Continuous(len(c.Lengths)))
			r, err := gp.Fit(t.Context(), k, dense(c.X), c.Y, flat(len(c.Lengths)), rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Model.LogMarginalLikelihood(); got < c.BestLogLikelihood-0.05 {
				t.Errorf("log marginal likelihood %v, scikit-learn reaches %v", got, c.BestLogLikelihood)
			}
		})
	}
}

func TestFitFindsWhatMatters(t *testing.T) {
	// sample depends on its first two columns only, and its noise has the
	// standard deviation 0.05 before it is standardised.
	x, y := sample(120, 5, 1)
	r, err := gp.Fit(t.Context(), kernel.NewMatern52(kernel.Continuous(5)), x, y, gp.DefaultConfig(5), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Model.Hyperparameters()
	for c := 2; c < 5; c++ {
		if h.Kernel[c] < h.Kernel[0]+1 {
			t.Errorf("log lengthscales %v: column %d does not matter but is not longer than column 0", h.Kernel, c)
		}
	}
	at, truth := sample(200, 5, 2)
	mean, _ := r.Model.Posterior(at)
	var squares float64
	for i := range mean {
		squares += (mean[i] - truth[i]) * (mean[i] - truth[i]) / float64(len(mean))
	}
	if squares > 0.03 {
		t.Errorf("mean squared error %v of an outcome of variance 1", squares)
	}
}

func TestFitHoldsWhatIsFixedAndBounded(t *testing.T) {
	x, y := sample(30, 2, 1)
	c := gp.DefaultConfig(2)
	c.Kernel[0].Fixed, c.Kernel[0].Start = true, math.Log(0.123)
	c.Kernel[1].Max = math.Log(0.2)
	c.Noise.Fixed, c.Noise.Start = true, math.Log(0.01)
	c.NoiseFloor = 0.001
	r, err := gp.Fit(t.Context(), kernel.NewMatern52(kernel.Continuous(2)), x, y, c, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Model.Hyperparameters()
	if h.Kernel[0] != math.Log(0.123) || math.Abs(h.Noise-0.011) > 1e-15 {
		t.Errorf("fixed hyperparameters moved: %+v", h)
	}
	if h.Kernel[1] > math.Log(0.2) {
		t.Errorf("lengthscale %v beyond its bound 0.2", math.Exp(h.Kernel[1]))
	}
	for i := range c.Kernel {
		c.Kernel[i].Fixed = true
	}
	if _, err := gp.Fit(t.Context(), kernel.NewMatern52(kernel.Continuous(2)), x, y, c, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Errorf("a fit with nothing to choose: %v", err)
	}
}

func TestWarmStartIsCheaperAndAsGood(t *testing.T) {
	x, y := sample(100, 4, 1)
	k := kernel.NewMatern52(kernel.Continuous(4))
	cold, err := gp.Fit(t.Context(), k, x, y, gp.DefaultConfig(4), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	c := gp.DefaultConfig(4)
	h := cold.Model.Hyperparameters()
	c.Warm, c.Starts = &h, 1
	warm, err := gp.Fit(t.Context(), k, x, y, c, rand.New(rand.NewPCG(2, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if warm.LogPosterior < cold.LogPosterior-1e-3 || warm.Evaluations > cold.Evaluations {
		t.Errorf("warm: %v after %d evaluations; cold: %v after %d", warm.LogPosterior, warm.Evaluations, cold.LogPosterior, cold.Evaluations)
	}
}

func TestFitOnASubsetIsNearTheFull(t *testing.T) {
	x, y := sample(150, 3, 1)
	k := kernel.NewMatern52(kernel.Continuous(3))
	full, err := gp.Fit(t.Context(), k, x, y, gp.DefaultConfig(3), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for polish, slack := range map[int]float64{0: 25, 15: 0.5} {
		c := gp.DefaultConfig(3)
		c.Subset, c.Explore, c.Polish = 60, 30, polish
		r, err := gp.Fit(t.Context(), k, x, y, c, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if r.Model.Len() != 150 || r.LogPosterior < full.LogPosterior-slack {
			t.Errorf("polish %d: log posterior %v over %d observations, full fit %v", polish, r.LogPosterior, r.Model.Len(), full.LogPosterior)
		}
	}
}

func TestFitEndsWithItsContext(t *testing.T) {
	x, y := sample(50, 3, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := gp.Fit(ctx, kernel.NewMatern52(kernel.Continuous(3)), x, y, gp.DefaultConfig(3), rand.New(rand.NewPCG(1, 1)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	c := gp.DefaultConfig(3)
	for i, p := range c.Kernel {
		if got := r.Model.Hyperparameters().Kernel[i]; got != p.Start {
			t.Errorf("hyperparameter %d of a fit without time is %v, want its start %v", i, got, p.Start)
		}
	}
}

// ending is a context that ends when it is checked for the n-th time.
type ending struct {
	context.Context
	left int
}

func (c *ending) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// The longer a fit lasts, the better its result when its time runs out.
func TestFitReturnsWhatItHas(t *testing.T) {
	x, y := sample(60, 3, 1)
	c := gp.DefaultConfig(3)
	c.Starts = 1
	likelihood := func(looks int) float64 {
		r, err := gp.Fit(&ending{t.Context(), looks}, kernel.NewMatern52(kernel.Continuous(3)), x, y, c, rand.New(rand.NewPCG(1, 1)))
		if r == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("ended at look %d: the result %v and %v, want a model and %v", looks, r, err, context.DeadlineExceeded)
		}
		// For the same observations, the posterior density only grows.
		density := r.Model.LogMarginalLikelihood()
		for i, p := range c.Kernel {
			value, _ := p.Prior.LogDensity(r.Model.Hyperparameters().Kernel[i])
			density += value
		}
		noise, _ := c.Noise.Prior.LogDensity(math.Log(r.Model.Hyperparameters().Noise - c.NoiseFloor))
		return density + noise
	}
	before := likelihood(0)
	first := before
	for looks := 1; looks < 16; looks++ {
		after := likelihood(looks)
		if after < before-1e-9 {
			t.Errorf("log posterior %v with %d looks, %v with one less", after, looks, before)
		}
		before = after
	}
	if before < first+1 {
		t.Errorf("log posterior %v after 15 looks, %v at the start", before, first)
	}
}

// Any data give a finite posterior.
func TestDegenerateData(t *testing.T) {
	const d = 2
	same := func(n int) *mat.Dense { return mat.NewDense(n, d, repeat(0.5, n*d)) }
	spread, smooth := sample(30, d, 1)
	scaled := func(unit float64) []float64 {
		out := make([]float64, len(smooth))
		for i, v := range smooth {
			out[i] = v * unit
		}
		return out
	}
	outlier := scaled(1)
	outlier[3] = 1e300
	for _, c := range []struct {
		name string
		x    *mat.Dense
		y    []float64
	}{
		{"one observation", same(1), []float64{3}},
		{"two equal observations", same(2), []float64{3, 3}},
		{"duplicates that disagree", same(40), append(repeat(1, 20), repeat(2, 20)...)},
		{"equal outcomes", spread, repeat(7, 30)},
		{"huge outcomes", spread, scaled(1e300)},
		{"an outlier", spread, outlier},
		{"tiny outcomes", spread, scaled(1e-300)},
		{"little spread", spread, func() []float64 {
			y := scaled(1e-9)
			for i := range y {
				y[i] += 1e6
			}
			return y
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			z, scale := gp.Standardize(c.y)
			r, err := gp.Fit(t.Context(), kernel.NewMatern52(kernel.Continuous(d)), c.x, z, gp.DefaultConfig(d), rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			f := r.Model.Fantasies()
			f.Believe(same(5)) // five times one point
			g := f.Gradients(spread)
			for i := range 30 {
				for _, v := range []float64{g.Mean[i], scale.Mean + scale.SD*g.Mean[i], g.DMean.At(i, 0), g.DVariance.At(i, 1), r.LogPosterior} {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("not finite: %v", v)
					}
				}
				if !(g.Variance[i] > 0) {
					t.Fatalf("variance %v", g.Variance[i])
				}
			}
		})
	}
}
