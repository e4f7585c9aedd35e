package uhe

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// Pseudo-points are uniform, and have the outcome of the nearest observation, where
// different categories are 1 apart: by brute force over points and parameters.
func TestPseudoPoints(t *testing.T) {
	p := optimizer.Problem{Space: optimizertest.Mixed(t), Direction: study.Minimize}
	encoding, rng := optimizer.NewEncoding(p.Space), rand.New(rand.NewPCG(1, 1))
	for i := range 30 {
		u := make([]float64, encoding.Dim())
		for c := range u {
			u[c] = rng.Float64()
		}
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: encoding.Decode(u), Outcome: optimizer.OutcomeCompleted, Values: study.Values{rng.NormFloat64()},
		})
	}
	d := observe(&p, encoding)
	x, y := newModel(encoding, d, ShapeRate).pseudo(rng)
	if n, _ := x.Dims(); n != 60 || len(y) != 60 {
		t.Fatalf("%d pseudo-points of 30 observations, want 60", n)
	}
	used := map[float64]bool{}
	for i := range y {
		order := make([]int, len(d.Y))
		far := make([]float64, len(d.Y))
		for k := range order {
			order[k] = k
			for c, column := range encoding.Columns() {
				difference := math.Abs(x.At(i, c) - d.X.At(k, c))
				if column.Categorical() && difference > 0 {
					difference = 1
				}
				far[k] += difference * difference
			}
		}
		slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, far[a]-far[b])) })
		if y[i] != d.Y[order[0]] && far[order[0]] != far[order[1]] {
			t.Errorf("pseudo-point %d has the outcome %v, that of the nearest observation is %v", i, y[i], d.Y[order[0]])
		}
		used[y[i]] = true
	}
	if len(used) < 10 {
		t.Errorf("only %d of 30 observations are nearest to one of 60 points", len(used))
	}
}

// The chain of mcmc samples the posterior of the hyperparameters: the means of log ℓ and of
// the logarithm of the noise against quadrature on a grid, for one parameter.
func TestChainAgainstQuadrature(t *testing.T) {
	p := optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize}
	for i, v := range []float64{0.3, -0.9, 1.4, 0.2, -1.1} {
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": []float64{0.05, 0.3, 0.55, 0.7, 0.95}[i]}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{v},
		})
	}
	encoding := optimizer.NewEncoding(p.Space)
	m := newModel(encoding, observe(&p, encoding), ShapeRate)
	// The density by its definition, with a covariance matrix of its own.
	density := func(theta [3]float64) float64 {
		n := len(m.data.Y)
		cov := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				s := math.Sqrt(5) * math.Abs(m.data.X.At(i, 0)-m.data.X.At(j, 0)) / math.Exp(theta[0])
				v := math.Exp(theta[1]) * (1 + s + s*s/3) * math.Exp(-s)
				if i == j {
					v += 1e-6 + math.Exp(theta[2])
				}
				cov.SetSym(i, j, v)
			}
		}
		var factor mat.Cholesky
		if !factor.Factorize(cov) {
			return 0
		}
		y := mat.NewVecDense(n, m.data.Y)
		var solved mat.VecDense
		if err := factor.SolveVecTo(&solved, y); err != nil {
			return 0
		}
		// Gamma(0.001, rate 10) of each, as a density of the logarithm.
		var prior float64
		for _, v := range theta {
			prior += 1e-3*v - 10*math.Exp(v)
		}
		return math.Exp(prior - mat.Dot(y, &solved)/2 - factor.LogDet()/2)
	}
	var sum, length, noise float64
	const steps = 60
	low, high := [3]float64{math.Log(0.01), math.Log(1e-3), math.Log(1e-8)}, [3]float64{math.Log(1e3), 4, math.Log(10)}
	for i := range steps {
		for j := range steps {
			for k := range steps {
				theta := [3]float64{}
				for c, index := range []int{i, j, k} {
					theta[c] = low[c] + (high[c]-low[c])*(float64(index)+0.5)/steps
				}
				v := density(theta)
				sum, length, noise = sum+v, length+v*theta[0], noise+v*theta[2]
			}
		}
	}
	rng := rand.New(rand.NewPCG(5, 5))
	h := gp.Hyperparameters{Kernel: []float64{-1, 0}, Noise: 0.01}
	var gotLength, gotNoise float64
	const chains = 500
	for range chains {
		for _, s := range m.sample(t.Context(), h, false, rng) {
			h = s
			gotLength += s.Kernel[0] / (chains * samples)
			gotNoise += math.Log(s.Noise-1e-6) / (chains * samples)
		}
	}
	// The noise spans nine decades. Four thousand chains come within 0.12 of both.
	if math.Abs(gotLength-length/sum) > 0.12 || math.Abs(gotNoise-noise/sum) > 0.3 {
		t.Errorf("log ℓ is %.3f and log σ² %.3f in the mean, by quadrature %.3f and %.3f", gotLength, gotNoise, length/sum, noise/sum)
	}
}

// Gamma(0.001, 10) by the definitions: a Gamma distribution has the mean a/b and the variance a/b².
func TestReadingsOfThePrior(t *testing.T) {
	g := ShapeRate.gamma()
	if g.Shape != 1e-3 || g.Rate != 10 {
		t.Errorf("shape and rate are %v and %v", g.Shape, g.Rate)
	}
	g = MeanVariance.gamma()
	if mean, variance := g.Shape/g.Rate, g.Shape/g.Rate/g.Rate; math.Abs(mean-1e-3) > 1e-12 || math.Abs(variance-10) > 1e-9 {
		t.Errorf("mean and variance are %v and %v", mean, variance)
	}
}

// Fits, and the chain, have the prior of the setting: of few evaluations they find other
// lengthscales under the two readings, since one of them expects short ones.
func TestPriorIsUsed(t *testing.T) {
	p := waves(t, study.Minimize, 1)
	p.Observations = p.Observations[:6]
	for _, method := range []Method{UHE, MAP, MCMC, Shrink, Adaptive} {
		var found []float64
		for _, prior := range []Prior{ShapeRate, MeanVariance} {
			e, err := NewEstimate(t.Context(), options(t, func(o *Options) { o.Method, o.Prior = method, prior }), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, e.Lengthscales[0])
		}
		if found[0] >= found[1] {
			t.Errorf("%s: the lengthscale is %v under shape and rate, %v under mean and variance", method, found[0], found[1])
		}
	}
}

// Outcomes are standardised as they are: an outlier keeps its distance from the others. Of nine
// zeros and a one the mean is 0.1 and the standard deviation 0.3.
func TestOutliersAreNotSqueezed(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize}
	for i := range 10 {
		value := 0.0
		if i == 9 {
			value = 1
		}
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": float64(i) / 10}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
		})
	}
	y := observe(p, optimizer.NewEncoding(p.Space)).Y
	if ratio := y[9] / y[0]; math.Abs(ratio+9) > 1e-9 {
		t.Errorf("the outlier is %v times as far from the mean as the others, want 9 times: %v", -ratio, y)
	}
}
