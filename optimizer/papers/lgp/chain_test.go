package lgp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/bayestest"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// fixed returns the process of a target under given hyperparameters and latent values.
func fixed(kind Model, theta, latent []float64, x *mat.Dense, y []float64, sd float64) (bayes.Surrogate, error) {
	_, d := x.Dims()
	t := newTarget(kind, kernel.Continuous(d), x, y, sd)
	return t.model(t.start(theta, latent))
}

func TestModulatedSurrogate(t *testing.T) {
	bayestest.Surrogate(t, 3, func(x *mat.Dense, y []float64) (bayes.Surrogate, error) {
		// Points that the suite adds later have the latent input 0, like all others.
		return fixed(Latent, []float64{-0.5}, make([]float64, len(y)), x, y, 0.1)
	})
}

// With latent inputs of 0 the model is a Gaussian process over the parameters alone.
func TestWithoutLatentInputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := randomly(rng, 12, 2)
	at, _ := randomly(rng, 7, 2)
	m, err := fixed(Latent, []float64{-0.7}, make([]float64, 12), x, y, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	want, err := gp.Condition(
		kernel.NewMatern52(kernel.Continuous(2)), gp.Hyperparameters{Kernel: []float64{-0.7, -0.7, 0}, Noise: leastNoise}, x, y,
	)
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(at)
	wantMean, wantVariance := want.Posterior(at)
	for i := range mean {
		if math.Abs(mean[i]-wantMean[i]) > 1e-8 || math.Abs(variance[i]-wantVariance[i]) > 1e-8 {
			t.Errorf("mean %v and variance %v, of a Gaussian process %v and %v", mean[i], variance[i], wantMean[i], wantVariance[i])
		}
	}
}

func randomly(rng *rand.Rand, n, d int) (x *mat.Dense, y []float64) {
	x = mat.NewDense(n, d, nil)
	x.Apply(func(int, int, float64) float64 { return rng.Float64() }, x)
	for range n {
		y = append(y, rng.NormFloat64())
	}
	return x, y
}

// matern52 is the kernel by its formula (Rasmussen and Williams, equation 4.17).
func matern52(r float64) float64 {
	s := math.Sqrt(5) * r
	return (1 + s + s*s/3) * math.Exp(-s)
}

// exact is a posterior of two observations, by the formulas of a bivariate normal.
type exact struct{ density, mean, second float64 }

// twoPoints returns the density of the outcomes y of two points, and the mean and the
// second moment at a third, given their covariances and noise variances.
func twoPoints(y [2]float64, k12, k1, k2 float64, noise [2]float64) exact {
	a, b := 1+leastNoise+noise[0], 1+leastNoise+noise[1]
	det := a*b - k12*k12
	w1, w2 := (b*y[0]-k12*y[1])/det, (a*y[1]-k12*y[0])/det
	mean := k1*w1 + k2*w2
	variance := 1 - (b*k1*k1-2*k12*k1*k2+a*k2*k2)/det
	return exact{math.Exp(-(y[0]*w1+y[1]*w2)/2) / math.Sqrt(det), mean, variance + mean*mean}
}

// kumaraswamy is the warp by its definition, without the margin of 1e-6.
func kumaraswamy(x, a, b float64) float64 { return 1 - math.Pow(1-math.Pow(x, a), b) }

// The posterior mean and variance at a point, over a long chain, against quadrature over
// all hyperparameters and latent values, for each model and two observations.
func TestChainAgainstQuadrature(t *testing.T) {
	x, y := [2]float64{0.3, 0.55}, [2]float64{1.1, -0.8}
	const at, sd = 0.4, 0.5
	distance := func(a, b, length float64) float64 { return math.Abs(a-b) / length }
	for kind, c := range map[Model]struct {
		dims int // variables of the integral; the first is log ℓ
		of   func(v []float64) (exact, float64)
	}{
		Plain: {1, func(v []float64) (exact, float64) {
			l := math.Exp(v[0])
			return twoPoints(y, matern52(distance(x[0], x[1], l)), matern52(distance(x[0], at, l)), matern52(distance(x[1], at, l)), [2]float64{}), 1
		}},
		Homoscedastic: {2, func(v []float64) (exact, float64) {
			l, n := math.Exp(v[0]), math.Exp(v[1])
			return twoPoints(y, matern52(distance(x[0], x[1], l)), matern52(distance(x[0], at, l)), matern52(distance(x[1], at, l)),
				[2]float64{n, n}), 1
		}},
		Heteroscedastic: {3, func(v []float64) (exact, float64) {
			l := math.Exp(v[0])
			return twoPoints(y, matern52(distance(x[0], x[1], l)), matern52(distance(x[0], at, l)), matern52(distance(x[1], at, l)),
				[2]float64{math.Exp(v[1]), math.Exp(v[2])}), 1
		}},
		Shared: {4, func(v []float64) (exact, float64) {
			l := math.Exp(v[0])
			return twoPoints(y, matern52(distance(x[0], x[1], l)), matern52(distance(x[0], at, l)), matern52(distance(x[1], at, l)),
				[2]float64{math.Exp(v[1] + v[2]), math.Exp(v[1] + v[3])}), 1
		}},
		Latent: {3, func(v []float64) (exact, float64) {
			l, h1, h2 := math.Exp(v[0]), sd*v[1], sd*v[2]
			return twoPoints(y, matern52(math.Hypot(x[0]-x[1], h1-h2)/l), matern52(math.Hypot(x[0]-at, h1)/l), matern52(math.Hypot(x[1]-at, h2)/l),
				[2]float64{}), 1
		}},
		Warped: {3, func(v []float64) (exact, float64) {
			// The shapes' logarithms are normal with a standard deviation of 0.75, below log 10.
			l, a, b := math.Exp(v[0]), math.Exp(0.75*v[1]), math.Exp(0.75*v[2])
			if a > 10 || b > 10 {
				return exact{}, 0
			}
			w := func(x float64) float64 { return kumaraswamy(x, a, b) }
			return twoPoints(y, matern52(distance(w(x[0]), w(x[1]), l)), matern52(distance(w(x[0]), w(at), l)),
				matern52(distance(w(x[1]), w(at), l)), [2]float64{}), 1
		}},
	} {
		const reach = 5.0
		steps := 60
		if c.dims > 3 {
			steps = 30
		}
		var sum, mean, second float64
		v := make([]float64, c.dims)
		var integrate func(i int, weight float64)
		integrate = func(i int, weight float64) {
			if i == c.dims {
				p, inside := c.of(v)
				weight *= p.density * inside
				sum, mean, second = sum+weight, mean+weight*p.mean, second+weight*p.second
				return
			}
			for k := range steps {
				v[i] = -reach + 2*reach*(float64(k)+0.5)/float64(steps)
				integrate(i+1, weight*math.Exp(-v[i]*v[i]/2))
			}
		}
		integrate(0, 1)
		wantMean := mean / sum
		wantVariance := second/sum - wantMean*wantMean

		scale := 0.0
		if kind == Latent {
			scale = sd
		}
		target := newTarget(kind, kernel.Continuous(1), mat.NewDense(2, 1, x[:]), y[:], scale)
		chain := target.start(make([]float64, target.params()), make([]float64, target.latents()))
		rng := rand.New(rand.NewPCG(7, 7))
		const sweeps = 15_000
		var gotMean, gotSecond float64
		point := mat.NewDense(1, 1, []float64{at})
		for range sweeps {
			chain.sweep(rng)
			m, err := target.model(chain)
			if err != nil {
				t.Fatal(err)
			}
			mu, variance := m.Posterior(point)
			gotMean += mu[0] / sweeps
			gotSecond += (variance[0] + mu[0]*mu[0]) / sweeps
		}
		gotVariance := gotSecond - gotMean*gotMean
		if math.Abs(gotMean-wantMean) > 0.012 || math.Abs(gotVariance-wantVariance) > 0.012 {
			t.Errorf("%s: mean %.4f and variance %.4f, by quadrature %.4f and %.4f", kind, gotMean, gotVariance, wantMean, wantVariance)
		}
	}
}

// A jump that a smooth function cannot follow is explained by latent inputs: the posterior
// keeps a longer lengthscale than without them.
func TestLatentInputsKeepTheFunctionSmooth(t *testing.T) {
	const n = 24
	x, y := mat.NewDense(n, 1, nil), make([]float64, n)
	for i := range n {
		u := (float64(i) + 0.5) / n
		x.Set(i, 0, u)
		y[i] = 3 * (u - 0.5)
		if i%4 == 0 {
			y[i] += 1.5 // rapid detail on top of the trend
		}
	}
	length := func(kind Model, sd float64) float64 {
		target := newTarget(kind, kernel.Continuous(1), x, y, sd)
		c := target.start(make([]float64, target.params()), make([]float64, target.latents()))
		rng := rand.New(rand.NewPCG(9, 9))
		var sum float64
		const sweeps = 2000
		for i := range 2 * sweeps {
			if c.sweep(rng); i >= sweeps {
				sum += c.theta[0] / sweeps
			}
		}
		return math.Exp(sum)
	}
	if with, without := length(Latent, 0.1), length(Plain, 0); with < 1.2*without {
		t.Errorf("the lengthscale is %.3f with latent inputs and %.3f without", with, without)
	}
}
