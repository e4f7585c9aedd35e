package network

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/mixture"
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

// draw returns outcomes at x.
func (p process) draw(t *testing.T, x [][]float64, rng *rand.Rand) []float64 {
	var root mat.Cholesky
	if !root.Factorize(p.matrix(x, p.noise*p.noise+jitter)) {
		t.Fatal("the covariance is not positive definite")
	}
	var lower mat.TriDense
	root.LTo(&lower)
	z := mat.NewVecDense(len(x), nil)
	for i := range x {
		z.SetVec(i, rng.NormFloat64())
	}
	var y mat.VecDense
	y.MulVec(&lower, z)
	return y.RawVector().Data
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

// calibration sums up predictions at queries.
type calibration struct {
	queries int
	// gap is how far the cross-entropy is above the entropy of the exact posterior: the mean
	// divergence of the prediction from it. marginal is the same of a standard normal distribution.
	gap, marginal float64
	covered       float64 // the share of outcomes within the central 95%
}

// divergence returns the expectation of log p − log q under a normal distribution p.
func divergence(p distuv.Normal, q func(float64) float64) float64 {
	return quad.Fixed(func(z float64) float64 {
		y := p.Mu + p.Sigma*math.Sqrt2*z
		return (p.LogProb(y) - q(y)) / math.Sqrt(math.Pi)
	}, math.Inf(-1), math.Inf(1), 20, quad.Hermite{}, 0)
}

func (c *calibration) add(predicted mixture.Distribution, exact distuv.Normal, rng *rand.Rand) {
	c.gap += divergence(exact, predicted.LogDensity)
	c.marginal += divergence(exact, distuv.UnitNormal.LogProb)
	if at := predicted.CDF(exact.Mu + exact.Sigma*rng.NormFloat64()); math.Abs(at-0.5) < 0.475 {
		c.covered++
	}
	c.queries++
}

func (c calibration) mean() calibration {
	n := float64(c.queries)
	return calibration{c.queries, c.gap / n, c.marginal / n, c.covered / n}
}

func uniform(d int, rng *rand.Rand) []float64 {
	x := make([]float64, d)
	for i := range x {
		x[i] = rng.Float64()
	}
	return x
}

// besides returns a point at a normal step of log-uniform size from one of the best points, as
// around in train/prior.py.
func besides(x [][]float64, y []float64, rng *rand.Rand) []float64 {
	order := make([]int, len(y))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(y[a], y[b]) })
	at := slices.Clone(x[order[rng.IntN(5)]])
	size, some := 0.01*math.Pow(20, rng.Float64()), rng.Float64() < 0.5
	for i := range at {
		if !some || rng.Float64() < 0.5 {
			at[i] = min(1, max(0, at[i]+size*rng.NormFloat64()))
		}
	}
	return at
}

// calibrate predicts functions that were drawn after training, at even points and near the
// best observations. The exact posterior knows the hyperparameters that the transformer has to
// guess.
func calibrate(t *testing.T, m *Model, d, n int) (even, near calibration) {
	const sets, queries = 40, 20
	rng := rand.New(rand.NewPCG(7, uint64(1000*d+n)))
	for range sets {
		p := drawProcess(d, rng)
		var x, at [][]float64
		for range n {
			x = append(x, uniform(d, rng))
		}
		y := p.draw(t, x, rng)
		for range queries {
			at = append(at, uniform(d, rng), besides(x, y, rng))
		}
		mean, sd := stat.PopMeanStdDev(y, nil)
		standard := make([]float64, n)
		for i, v := range y {
			standard[i] = (v - mean) / sd
		}
		exactMean, exactVariance := p.posterior(t, x, y, at)
		for i, predicted := range m.Observe(x, standard).Predict(at) {
			exact := distuv.Normal{Mu: (exactMean[i] - mean) / sd, Sigma: math.Sqrt(exactVariance[i]) / sd}
			if i%2 == 0 {
				even.add(predicted, exact, rng)
			} else {
				near.add(predicted, exact, rng)
			}
		}
	}
	return even.mean(), near.mean()
}

func (c calibration) String() string {
	return fmt.Sprintf("gap %.2f (standard normal %.2f), covered %.2f", c.gap, c.marginal, c.covered)
}

// Compares predictions of held-out draws with the exact posterior, and with the nominal
// coverage of an interval. research/results/papers.md has the figures.
func TestCalibration(t *testing.T) {
	files, err := filepath.Glob("../weights/*.safetensors")
	if err != nil || len(files) == 0 {
		t.Fatalf("weights: %v, %v", files, err)
	}
	for _, file := range files {
		m := model(t, filepath.Base(file))
		for _, n := range []int{20, 100} {
			even, near := calibrate(t, m, m.Columns(), n)
			t.Logf("%d columns, %d observations: even %v; near the best %v", m.Columns(), n, even, near)
			for place, c := range map[string]struct {
				calibration
				most float64
			}{"even": {even, 0.4}, "near the best": {near, 0.5}} {
				if n == 100 && c.gap > c.most {
					t.Errorf("%d columns, %s: gap to the exact posterior %.2f, want at most %.2f", m.Columns(), place, c.gap, c.most)
				}
				if c.covered < 0.88 {
					t.Errorf("%d columns, %d observations, %s: the 95%% interval holds %.2f of the outcomes", m.Columns(), n, place, c.covered)
				}
			}
		}
	}
}
