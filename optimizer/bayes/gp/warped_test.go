package gp

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// warpedCase is a process that testdata/warped.py computed with mpmath.
type warpedCase struct {
	Name          string      `json:"name"`
	X             [][]float64 `json:"x"`
	Y             []float64   `json:"y"`
	At            [][]float64 `json:"at"`
	Lengths       []float64   `json:"lengths"`
	Signal        float64     `json:"signal"`
	Slope         float64     `json:"slope"`
	Shapes        []float64   `json:"shapes"`
	Noise         float64     `json:"noise"`
	Mean          []float64   `json:"mean"`
	Variance      []float64   `json:"variance"`
	LogLikelihood float64     `json:"log_likelihood"`
	Gradient      []float64   `json:"gradient"`
}

func (c *warpedCase) theta() (theta []float64) {
	for _, group := range [][]float64{c.Lengths, {c.Signal, c.Slope}, c.Shapes} {
		for _, v := range group {
			theta = append(theta, math.Log(v))
		}
	}
	return theta
}

func rows(v [][]float64) *mat.Dense {
	m := mat.NewDense(len(v), len(v[0]), nil)
	for i, row := range v {
		m.SetRow(i, row)
	}
	return m
}

// heboKernel is a warped sum of Matérn-3/2 and linear kernels.
func heboKernel(columns []kernel.Column) *kernel.Kernel {
	plain := kernel.WithoutSnap(columns)
	return kernel.NewWarped(kernel.NewSum(kernel.NewMatern32(plain), kernel.NewLinear(plain)), columns)
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestWarpedProcessAgainstMpmath(t *testing.T) {
	data, err := os.ReadFile("testdata/warped.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []warpedCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			x, k := rows(c.X), heboKernel(kernel.Continuous(len(c.Lengths)))
			m, err := Condition(k, Hyperparameters{Kernel: c.theta(), Noise: c.Noise}, x, c.Y)
			if err != nil {
				t.Fatal(err)
			}
			mean, variance := m.Posterior(rows(c.At))
			for i := range mean {
				within(t, "the mean", mean[i], c.Mean[i], 1e-11)
				within(t, "the variance", variance[i], c.Variance[i], 1e-11)
			}
			within(t, "the log marginal likelihood", m.LogMarginalLikelihood(), c.LogLikelihood, 1e-11)

			v := append(c.theta(), math.Log(c.Noise))
			config := openConfig(len(v))
			grad := make([]float64, len(v))
			newObjective(k, x, c.Y, &config).gradient(grad, v)
			for i := range grad {
				within(t, "a derivative of the likelihood", -grad[i], c.Gradient[i], 1e-9)
			}
		})
	}
}

// openConfig has no priors, and bounds wide enough not to matter.
func openConfig(params int) Config {
	open := Param{Prior: Flat{}, Min: -20, Max: 20}
	c := Config{Noise: open, Starts: 1}
	for range params - 1 {
		c.Kernel = append(c.Kernel, open)
	}
	return c
}

// The posterior's gradients with a prior variance that changes across the cube,
// pending points among them, by finite differences of the posterior.
func TestGradientsOfANonStationaryPosterior(t *testing.T) {
	const n, d, h = 25, 4, 1e-4
	columns := []kernel.Column{{}, {Snap: func(v float64) float64 { return math.Round(4*v) / 4 }}, {}, {Categorical: true}}
	k := heboKernel(columns)
	rng := rand.New(rand.NewPCG(9, 0))
	point := func() []float64 {
		return []float64{0.1 + 0.8*rng.Float64(), rng.Float64(), 0.1 + 0.8*rng.Float64(), float64(rng.IntN(3))}
	}
	x, y := mat.NewDense(n, d, nil), make([]float64, n)
	for i := range n {
		x.SetRow(i, point())
		y[i] = rng.NormFloat64()
	}
	theta := []float64{-0.5, 0, 0.4, 1, 0.2, 0.3, 0.5, -0.4, 0.2, 0.1, -0.8, 0.6}
	m, err := Condition(k, Hyperparameters{Kernel: theta, Noise: 0.05}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fantasies()
	f.Believe(mat.NewDense(2, d, append(point(), point()...)))
	at := mat.NewDense(3, d, nil)
	for i := range 3 {
		at.SetRow(i, point())
	}
	g := f.Gradients(at)
	for i := range 3 {
		for c := range d {
			moved := func(delta float64) (mean, variance []float64) {
				row := append([]float64(nil), at.RawRowView(i)...)
				row[c] += delta
				return f.Posterior(mat.NewDense(1, d, row))
			}
			upMean, upVariance := moved(h)
			downMean, downVariance := moved(-h)
			byMean, byVariance := 0.0, 0.0
			if c%2 == 0 {
				byMean, byVariance = (upMean[0]-downMean[0])/(2*h), (upVariance[0]-downVariance[0])/(2*h)
			}
			within(t, "a derivative of the mean", g.DMean.At(i, c), byMean, 1e-5)
			within(t, "a derivative of the variance", g.DVariance.At(i, c), byVariance, 1e-5)
		}
	}
}

// A linear kernel alone fixes the value in the middle of the cube: 0.
func TestPosteriorWhereThePriorVarianceIsZero(t *testing.T) {
	k := kernel.NewLinear(kernel.Continuous(2))
	x := mat.NewDense(3, 2, []float64{0, 0, 1, 0.2, 0.5, 0.5})
	m, err := Condition(k, Hyperparameters{Kernel: []float64{0}, Noise: 1e-2}, x, []float64{1, -1, 0})
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(mat.NewDense(1, 2, []float64{0.5, 0.5}))
	if mean[0] != 0 || !(variance[0] > 0 && variance[0] < 1e-100) {
		t.Errorf("mean %v, variance %v", mean[0], variance[0])
	}
}

func TestFitOfAWarpedKernel(t *testing.T) {
	const n, d = 40, 2
	rng := rand.New(rand.NewPCG(11, 0))
	x, y := mat.NewDense(n, d, nil), make([]float64, n)
	for i := range n {
		u, v := rng.Float64(), rng.Float64()
		x.SetRow(i, []float64{u, v})
		y[i] = math.Sin(8*math.Sqrt(math.Sqrt(u))) + 0.01*rng.NormFloat64() // steep near 0
	}
	y, _ = Standardize(y)
	k := heboKernel(kernel.Continuous(d))
	config := DefaultConfig(d)
	config.Kernel = append(config.Kernel, Param{Prior: Gamma{Shape: 2, Rate: 1}, Min: -7, Max: 7})
	shape := Param{Prior: LogNormal{Mu: 0, Sigma: 0.75}, Min: math.Log(0.01), Max: math.Log(10)}
	unwarped := config
	for range 2 * d {
		config.Kernel = append(config.Kernel, shape)
		fixed := shape
		fixed.Fixed = true
		unwarped.Kernel = append(unwarped.Kernel, fixed)
	}
	likelihood := func(c Config) (float64, []float64) {
		r, err := Fit(t.Context(), k, x, y, c, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return r.Model.LogMarginalLikelihood(), r.Model.Hyperparameters().Kernel
	}
	with, theta := likelihood(config)
	without, _ := likelihood(unwarped)
	if !(with > without+3) || !(theta[d+2] < -0.3) {
		t.Errorf("log likelihood %v with warping, log a = %v, and %v without", with, theta[d+2], without)
	}
}

// BenchmarkWarped measures a process of HEBO's kernel with 120 observations of
// nine columns: a step of a fit, a hundred candidates, gradients at ten.
func BenchmarkWarped(b *testing.B) {
	const n, d = 120, 9
	rng := rand.New(rand.NewPCG(12, 0))
	uniform := func(n int) *mat.Dense {
		x := mat.NewDense(n, d, nil)
		for i := range n {
			for c := range d {
				x.Set(i, c, rng.Float64())
			}
		}
		return x
	}
	x, at, y := uniform(n), uniform(100), make([]float64, n)
	for i := range y {
		y[i] = math.Sin(4*x.At(i, 0)) + x.At(i, 1) + 0.1*rng.NormFloat64()
	}
	k := heboKernel(kernel.Continuous(d))
	v := make([]float64, k.NumParams()+1)
	v[len(v)-1] = -3
	config := openConfig(len(v))
	o, grad := newObjective(k, x, y, &config), make([]float64, len(v))
	b.Run("fit", func(b *testing.B) {
		for b.Loop() {
			o.at = nil
			o.gradient(grad, v)
		}
	})
	m, err := Condition(k, Hyperparameters{Kernel: v[:k.NumParams()], Noise: 0.05}, x, y)
	if err != nil {
		b.Fatal(err)
	}
	f := m.Fantasies()
	b.Run("candidates", func(b *testing.B) {
		for b.Loop() {
			f.Candidates(at).Posterior()
		}
	})
	b.Run("gradients", func(b *testing.B) {
		ten := at.Slice(0, 10, 0, d)
		for b.Loop() {
			f.Gradients(ten)
		}
	})
}
