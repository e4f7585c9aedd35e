package gp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// stack returns the rows of a followed by those of b.
func stack(a, b mat.Matrix) *mat.Dense {
	var out mat.Dense
	out.Stack(a, b)
	return &out
}

// grid snaps to the nearest of n equidistant values 0, 1/(n−1), …, 1.
func grid(n int) func(float64) float64 {
	return func(v float64) float64 { return math.Round(v*float64(n-1)) / float64(n-1) }
}

// normals returns pseudo-random standard normal numbers.
func normals(rows, cols int, seed uint64) *mat.Dense {
	rng := rand.New(rand.NewPCG(seed, 0))
	z := mat.NewDense(rows, cols, nil)
	z.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, z)
	return z
}

// Conditioning the model from scratch on the believed values gives the same posterior.
func TestFantasiesEqualARefit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, q := rapid.IntRange(1, 80).Draw(r, "n"), rapid.IntRange(1, 9).Draw(r, "q")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		x, y := sample(n, 3, rng.Uint64())
		pending, _ := sample(q, 3, rng.Uint64())
		at, _ := sample(70, 3, rng.Uint64())
		k := kernel.NewMatern52([]kernel.Column{{}, {}, {Snap: grid(4)}})
		h := hyper(1.3, 0.02, 0.3, 0.8, 0.5)
		m, err := gp.Condition(k, h, x, y)
		if err != nil {
			t.Fatal(err)
		}
		f := m.Fantasies()
		c := f.Candidates(at)
		f.Believe(pending)
		mean, variance := f.Posterior(at)
		cachedMean, cachedVariance := c.Posterior()
		believed, _ := m.Posterior(pending)
		refit, err := gp.Condition(k, h, stack(x, pending), slices.Concat(y, believed))
		if err != nil {
			t.Fatal(err)
		}
		wantMean, wantVariance := refit.Posterior(at)
		near(t, "mean", mean, wantMean, 1e-9)
		near(t, "variance", variance, wantVariance, 1e-9)
		near(t, "candidates' mean", cachedMean, wantMean, 1e-9)
		near(t, "candidates' variance", cachedVariance, wantVariance, 1e-9)
	})
}

func repeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// The joint covariance of the values of drawn functions, from the definition
// K** − K*ᵀ(K + noise)⁻¹K*; their mean is the model's.
func TestSamplesHaveTheJointPosterior(t *testing.T) {
	const q, draws = 3, 20000
	x, y := sample(15, 2, 1)
	pending := mat.NewDense(q, 2, []float64{0.4, 0.4, 0.45, 0.4, 0.9, 0.1})
	k, h := kernel.NewMatern52(kernel.Continuous(2)), hyper(1, 0.05, 0.3, 0.6)
	m, err := gp.Condition(k, h, x, y)
	if err != nil {
		t.Fatal(err)
	}
	values, err := m.Sample(pending, normals(q, draws, 2))
	if err != nil {
		t.Fatal(err)
	}
	mean, _ := m.Posterior(pending)

	gram := mat.NewSymDense(15+q, nil)
	k.Prepare(h.Kernel, stack(x, pending), false).Gram(gram)
	full := mat.DenseCopyOf(gram)
	for i := range 15 {
		full.Set(i, i, full.At(i, i)+h.Noise)
	}
	var solved, covariance mat.Dense
	if err := solved.Solve(full.Slice(0, 15, 0, 15), full.Slice(0, 15, 15, 15+q)); err != nil {
		t.Fatal(err)
	}
	covariance.Mul(full.Slice(15, 15+q, 0, 15), &solved)
	covariance.Sub(full.Slice(15, 15+q, 15, 15+q), &covariance)
	for i := range q {
		if got, se := stat.Mean(values.RawRowView(i), nil), math.Sqrt(covariance.At(i, i)/draws); math.Abs(got-mean[i]) > 5*se {
			t.Errorf("the mean of value %d is %v, want %v ± %v", i, got, mean[i], se)
		}
		for j := range q {
			got := stat.Covariance(values.RawRowView(i), values.RawRowView(j), nil)
			// The standard error of a covariance of normal variables.
			se := math.Sqrt((covariance.At(i, i)*covariance.At(j, j) + covariance.At(i, j)*covariance.At(i, j)) / draws)
			if math.Abs(got-covariance.At(i, j)) > 5*se {
				t.Errorf("the covariance of values %d and %d is %v, want %v ± %v", i, j, got, covariance.At(i, j), se)
			}
		}
	}
}

// Equal points have the same value in a drawn function, and an observed point without
// noise has its outcome.
func TestSampleOfKnownPoints(t *testing.T) {
	x, y := sample(15, 2, 1)
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(2)), hyper(1, 1e-8, 0.3, 0.6), x, y)
	if err != nil {
		t.Fatal(err)
	}
	at := stack(x.Slice(3, 5, 0, 2).(*mat.Dense), mat.NewDense(2, 2, []float64{0.4, 0.4, 0.4, 0.4}))
	values, err := m.Sample(at, normals(4, 50, 1))
	if err != nil {
		t.Fatal(err)
	}
	for s := range 50 {
		near(t, "observed", mat.Col(nil, s, values.Slice(0, 2, 0, 50)), y[3:5], 1e-3)
		near(t, "twice", []float64{values.At(2, s)}, []float64{values.At(3, s)}, 1e-3)
	}
}

func TestBelieverKeepsTheMeanAndShrinksTheVariance(t *testing.T) {
	x, y := sample(30, 2, 1)
	pending, _ := sample(4, 2, 2)
	at, _ := sample(50, 2, 3)
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(2)), hyper(1, 0.01, 0.2, 0.2), x, y)
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(at)
	f := m.Fantasies()
	f.Believe(pending)
	after, shrunk := f.Posterior(at)
	near(t, "mean", after, mean, 1e-12)
	for i := range shrunk {
		if shrunk[i] > variance[i] {
			t.Errorf("variance rose from %v to %v", variance[i], shrunk[i])
		}
	}
}

// Candidates follow points that are added between calls.
func TestCandidatesFollow(t *testing.T) {
	x, y := sample(30, 2, 1)
	pending, _ := sample(6, 2, 2)
	at, _ := sample(80, 2, 3)
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(2)), hyper(1, 0.01, 0.2, 0.2), x, y)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fantasies()
	c := f.Candidates(at)
	for from := 0; from < 6; from += 3 {
		f.Believe(pending.Slice(from, from+3, 0, 2))
		mean, variance := c.Posterior()
		wantMean, wantVariance := f.Posterior(at)
		near(t, "mean", mean, wantMean, 1e-12)
		near(t, "variance", variance, wantVariance, 1e-12)
	}
}

func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	const h = 1e-5
	x, y := sample(40, 3, 1)
	k := kernel.NewMatern52([]kernel.Column{{}, {Snap: grid(4)}, {}})
	m, err := gp.Condition(k, hyper(1.3, 0.02, 0.3, 0.8, 0.5), x, y)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fantasies()
	at, _ := sample(5, 3, 3)
	check := func() {
		g := f.Gradients(at)
		mean, variance := f.Posterior(at)
		near(t, "variance", g.Variance, variance, 1e-12)
		near(t, "mean", g.Mean, mean, 1e-12)
		for c := range 3 {
			up, down := mat.DenseCopyOf(at), mat.DenseCopyOf(at)
			for i := range 5 {
				up.Set(i, c, at.At(i, c)+h)
				down.Set(i, c, at.At(i, c)-h)
			}
			upMean, upVariance := f.Posterior(up)
			downMean, downVariance := f.Posterior(down)
			for i := range 5 {
				difference := func(up, down float64) []float64 {
					if c == 1 {
						return []float64{0}
					}
					return []float64{(up - down) / (2 * h)}
				}
				near(t, "∂variance", []float64{g.DVariance.At(i, c)}, difference(upVariance[i], downVariance[i]), 1e-6)
				near(t, "∂mean", []float64{g.DMean.At(i, c)}, difference(upMean[i], downMean[i]), 1e-6)
			}
		}
	}
	check()
	pending, _ := sample(4, 3, 2)
	f.Believe(pending.Slice(0, 2, 0, 3))
	check()
	f.Believe(pending.Slice(2, 4, 0, 3))
	check()
}
