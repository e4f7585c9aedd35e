package network

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// process is a Gaussian process of the prior in train/prior.py, with its hyperparameters.
type process struct {
	lengthscales []float64
	noise        float64
}

func drawProcess(d int, rng *rand.Rand) process {
	var p process
	for range d {
		p.lengthscales = append(p.lengthscales, 0.3*math.Sqrt(float64(d))*math.Exp(0.6*rng.NormFloat64()))
	}
	if rng.Float64() < 0.5 {
		p.noise = 1e-3 * math.Pow(300, rng.Float64())
	}
	return p
}

// covariance is Matérn's with ν = 5/2 and unit variance.
func (p process) covariance(a, b []float64) float64 {
	var square float64
	for i, l := range p.lengthscales {
		square += (a[i] - b[i]) * (a[i] - b[i]) / (l * l)
	}
	r := math.Sqrt(5 * square)
	return (1 + r + r*r/3) * math.Exp(-r)
}

func (p process) matrix(x [][]float64, diagonal float64) *mat.SymDense {
	k := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i {
			k.SetSym(i, j, p.covariance(x[i], x[j]))
		}
		k.SetSym(i, i, 1+diagonal)
	}
	return k
}

// jitter is added to the prior's covariances in training.
const jitter = 1e-6

// draw returns the values of a function of the process.
func (p process) draw(t *testing.T, x [][]float64, rng *rand.Rand) []float64 {
	var root mat.Cholesky
	if !root.Factorize(p.matrix(x, jitter)) {
		t.Fatal("the covariance is not positive definite")
	}
	var lower mat.TriDense
	root.LTo(&lower)
	z := mat.NewVecDense(len(x), nil)
	for i := range x {
		z.SetVec(i, rng.NormFloat64())
	}
	var f mat.VecDense
	f.MulVec(&lower, z)
	return f.RawVector().Data
}

// posterior returns the exact mean and variance of the function at each query.
func (p process) posterior(t *testing.T, x [][]float64, y []float64, queries [][]float64) (mean, variance []float64) {
	var root mat.Cholesky
	if !root.Factorize(p.matrix(x, p.noise*p.noise+jitter)) {
		t.Fatal("the covariance is not positive definite")
	}
	var weights, solved mat.VecDense
	if err := root.SolveVecTo(&weights, mat.NewVecDense(len(y), y)); err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		k := mat.NewVecDense(len(x), nil)
		for i := range x {
			k.SetVec(i, p.covariance(q, x[i]))
		}
		if err := root.SolveVecTo(&solved, k); err != nil {
			t.Fatal(err)
		}
		mean = append(mean, mat.Dot(k, &weights))
		variance = append(variance, max(jitter, 1+jitter-mat.Dot(k, &solved)))
	}
	return mean, variance
}

// calibration sums up predictions of held-out draws.
type calibration struct {
	queries int
	// entropy is the mean negative logarithm of the probability of the outcome's bucket;
	// exact is that of the exact posterior, marginal that of a standard normal distribution.
	entropy, exact, marginal float64
	covered                  [3]float64 // shares within the central intervals
	apart                    float64    // root mean squared difference to the exact means
}

var intervals = [3]float64{0.5, 0.8, 0.95}

// calibrate predicts functions that were drawn after training, at uniform points. The exact
// posterior knows the hyperparameters that the transformer has to guess.
func calibrate(t *testing.T, m *Model, d, n int) calibration {
	const sets, queries = 40, 25
	rng := rand.New(rand.NewPCG(7, uint64(1000*d+n)))
	var c calibration
	for range sets {
		p := drawProcess(d, rng)
		x := make([][]float64, n+queries)
		for i := range x {
			for range d {
				x[i] = append(x[i], rng.Float64())
			}
		}
		f := p.draw(t, x, rng)
		y := make([]float64, n)
		for i := range y {
			y[i] = f[i] + p.noise*rng.NormFloat64()
		}
		mean, sd := stat.PopMeanStdDev(y, nil)
		standard := make([]float64, n)
		for i, v := range y {
			standard[i] = (v - mean) / sd
		}
		exactMean, exactVariance := p.posterior(t, x[:n], y, x[n:])
		for i, predicted := range m.Observe(x[:n], standard).Predict(x[n:]) {
			value := (f[n+i] - mean) / sd
			low, high := predicted.Ends(value)
			within := func(cdf func(float64) float64) float64 {
				below, above := 0.0, 1.0
				if !math.IsInf(low, 0) {
					below = cdf(low)
				}
				if !math.IsInf(high, 0) {
					above = cdf(high)
				}
				return -math.Log(max(1e-12, above-below))
			}
			exact := distuv.Normal{Mu: (exactMean[i] - mean) / sd, Sigma: math.Sqrt(exactVariance[i]) / sd}
			c.entropy += within(predicted.CDF)
			c.exact += within(exact.CDF)
			c.marginal += within(distuv.UnitNormal.CDF)
			at := predicted.CDF(value)
			for k, share := range intervals {
				if math.Abs(at-0.5) < share/2 {
					c.covered[k]++
				}
			}
			c.apart += (predicted.Mean() - exact.Mu) * (predicted.Mean() - exact.Mu)
			c.queries++
		}
	}
	scale := 1 / float64(c.queries)
	c.entropy, c.exact, c.marginal, c.apart = c.entropy*scale, c.exact*scale, c.marginal*scale, math.Sqrt(c.apart*scale)
	for k := range c.covered {
		c.covered[k] *= scale
	}
	return c
}

func (c calibration) String() string {
	return fmt.Sprintf("cross-entropy %.2f, exact %.2f, standard normal %.2f; covered %.2f; %.2f from the exact mean",
		c.entropy, c.exact, c.marginal, c.covered, c.apart)
}

// Compares predictions of held-out draws with the exact posterior, and with the nominal
// coverage of intervals. research/results/papers.md has the figures.
func TestCalibration(t *testing.T) {
	files, err := filepath.Glob("../weights/*.safetensors")
	if err != nil || len(files) == 0 {
		t.Fatalf("weights: %v, %v", files, err)
	}
	for _, file := range files {
		m := model(t, filepath.Base(file))
		for _, n := range []int{10, 30, 100} {
			c := calibrate(t, m, m.Columns(), n)
			t.Logf("%d columns, %d observations: %v", m.Columns(), n, c)
			if c.covered[2] < 0.85 {
				t.Errorf("%d columns, %d observations: the 95%% interval holds %.2f of the outcomes", m.Columns(), n, c.covered[2])
			}
			if c.entropy < c.exact-0.05 {
				t.Errorf("%d columns, %d observations: cross-entropy %.2f, below the exact posterior's %.2f", m.Columns(), n, c.entropy, c.exact)
			}
			gain := map[int]float64{1: 1.5, 2: 1.5, 5: 0.1}[m.Columns()] // over not looking at the observations
			if n == 100 && c.entropy > c.marginal-gain {
				t.Errorf("%d columns, %d observations: cross-entropy %.2f, of a standard normal distribution %.2f", m.Columns(), n, c.entropy, c.marginal)
			}
		}
	}
}
