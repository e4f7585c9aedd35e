// Package bayestest holds the tests that every bayes.Surrogate and every
// bayes.Acquisition passes.
package bayestest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
)

// Condition returns the surrogate of the outcomes y at the rows of x. It does not learn
// anything else from them: two calls differ by their data alone.
type Condition func(x *mat.Dense, y []float64) (bayes.Surrogate, error)

// tolerance is the largest difference between two ways to the same number.
const tolerance = 1e-7

// Surrogate tests an implementation over points of dim columns.
func Surrogate(t *testing.T, dim int, condition Condition) {
	for name, test := range map[string]func(t *testing.T, s *subject){
		"pending points never raise the variance":    pendingLowerVariance,
		"conditioning equals refitting":              conditioningRefits,
		"believed points leave the mean":             believedKeepMean,
		"the order of evaluations does not matter":   permuted,
		"the order of pending points does not":       pendingPermuted,
		"candidates follow what is added":            candidatesFollow,
		"gradients are the slopes of the posterior":  gradients,
		"samples have the posterior's mean":          samples,
		"duplicates, one point and equal outcomes":   degenerate,
		"a surrogate does not change by being asked": unchanged,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, &subject{dim: dim, condition: condition, rng: rand.New(rand.NewPCG(1, 2))})
		})
	}
}

type subject struct {
	dim       int
	condition Condition
	rng       *rand.Rand
}

func (s *subject) points(n int) *mat.Dense {
	x := mat.NewDense(n, s.dim, nil)
	x.Apply(func(int, int, float64) float64 { return s.rng.Float64() }, x)
	return x
}

// outcomes returns a smooth function of the points.
func outcomes(x *mat.Dense) []float64 {
	n, _ := x.Dims()
	y := make([]float64, n)
	for i := range y {
		for j, u := range x.RawRowView(i) {
			y[i] += math.Sin(3*u+float64(j)) / float64(j+1)
		}
	}
	return y
}

func (s *subject) normals(rows, columns int) *mat.Dense {
	z := mat.NewDense(rows, columns, nil)
	z.Apply(func(int, int, float64) float64 { return s.rng.NormFloat64() }, z)
	return z
}

func (s *subject) fit(t *testing.T, x *mat.Dense, y []float64) bayes.Surrogate {
	t.Helper()
	m, err := s.condition(x, y)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// example returns a surrogate of 20 evaluations and 15 other points.
func (s *subject) example(t *testing.T) (m bayes.Surrogate, at *mat.Dense) {
	x := s.points(20)
	return s.fit(t, x, outcomes(x)), s.points(15)
}

func same(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > tolerance*(1+math.Abs(want[i])) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func stack(a, b *mat.Dense) *mat.Dense {
	var out mat.Dense
	out.Stack(a, b)
	return &out
}

func pendingLowerVariance(t *testing.T, s *subject) {
	m, at := s.example(t)
	pending := s.points(6)
	f := m.Fantasies()
	_, before := f.Posterior(at)
	for i := range 6 {
		x := pending.Slice(i, i+1, 0, s.dim).(*mat.Dense)
		_, beside := f.Posterior(x)
		f.Believe(x)
		_, after := f.Posterior(at)
		for j := range after {
			if !(after[j] > 0) || after[j] > before[j]*(1+tolerance) {
				t.Errorf("a pending point changes the variance from %v to %v", before[j], after[j])
			}
		}
		before = after
		if _, there := f.Posterior(x); !(there[0] < beside[0]) {
			t.Errorf("the variance at the pending point itself goes from %v to %v", beside[0], there[0])
		}
	}
}

func conditioningRefits(t *testing.T, s *subject) {
	x, more, at := s.points(20), s.points(5), s.points(15)
	y := outcomes(x)
	m := s.fit(t, x, y)
	believed, _ := m.Posterior(more)
	f := m.Fantasies()
	f.Believe(more)
	mean, variance := f.Posterior(at)
	wantMean, wantVariance := s.fit(t, stack(x, more), slices.Concat(y, believed)).Posterior(at)
	same(t, "mean", mean, wantMean)
	same(t, "variance", variance, wantVariance)
}

func believedKeepMean(t *testing.T, s *subject) {
	m, at := s.example(t)
	want, _ := m.Posterior(at)
	f := m.Fantasies()
	f.Believe(s.points(5))
	mean, _ := f.Posterior(at)
	same(t, "mean", mean, want)
}

func permuted(t *testing.T, s *subject) {
	x, at := s.points(20), s.points(15)
	y := outcomes(x)
	wantMean, wantVariance := s.fit(t, x, y).Posterior(at)
	shuffled, values := mat.NewDense(20, s.dim, nil), make([]float64, 20)
	for to, from := range s.rng.Perm(20) {
		shuffled.SetRow(to, x.RawRowView(from))
		values[to] = y[from]
	}
	mean, variance := s.fit(t, shuffled, values).Posterior(at)
	same(t, "mean", mean, wantMean)
	same(t, "variance", variance, wantVariance)
}

func pendingPermuted(t *testing.T, s *subject) {
	m, at := s.example(t)
	pending := s.points(2)
	f := m.Fantasies()
	f.Believe(pending)
	wantMean, wantVariance := f.Posterior(at)
	g := m.Fantasies()
	for _, i := range []int{1, 0} {
		g.Believe(pending.Slice(i, i+1, 0, s.dim))
	}
	mean, variance := g.Posterior(at)
	same(t, "mean", mean, wantMean)
	same(t, "variance", variance, wantVariance)
}

func candidatesFollow(t *testing.T, s *subject) {
	m, at := s.example(t)
	f := m.Fantasies()
	c := f.Candidates(at)
	for range 3 {
		f.Believe(s.points(2))
		mean, variance := c.Posterior()
		wantMean, wantVariance := f.Posterior(at)
		same(t, "mean", mean, wantMean)
		same(t, "variance", variance, wantVariance)
	}
}

// gradients compares with central differences; this suite has no columns
// that a surrogate rounds.
func gradients(t *testing.T, s *subject) {
	m, _ := s.example(t)
	f := m.Fantasies()
	f.Believe(s.points(2))
	const step = 1e-5
	at := mat.NewDense(1, s.dim, nil)
	for j := range s.dim {
		at.Set(0, j, 0.2+0.6*s.rng.Float64())
	}
	g := f.Gradients(at)
	mean, variance := f.Posterior(at)
	same(t, "mean", g.Mean, mean)
	same(t, "variance", g.Variance, variance)
	for j := range s.dim {
		moved := func(by float64) (mean, variance []float64) {
			x := mat.DenseCopyOf(at)
			x.Set(0, j, x.At(0, j)+by)
			return f.Posterior(x)
		}
		up, above := moved(step)
		down, below := moved(-step)
		if got, want := g.DMean.At(0, j), (up[0]-down[0])/(2*step); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("slope of the mean along column %d: %v, by differences %v", j, got, want)
		}
		if got, want := g.DVariance.At(0, j), (above[0]-below[0])/(2*step); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("slope of the variance along column %d: %v, by differences %v", j, got, want)
		}
	}
}

func samples(t *testing.T, s *subject) {
	m, at := s.example(t)
	const draws = 4000
	values, err := m.Sample(at, s.normals(15, draws))
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(at)
	for i := range mean {
		if got, error4 := bayes.Average(values.RawRowView(i)), 4*math.Sqrt(variance[i]/draws); math.Abs(got-mean[i]) > error4+1e-6 {
			t.Errorf("the samples' mean is %v, want %v ± %v", got, mean[i], error4)
		}
	}
}

func degenerate(t *testing.T, s *subject) {
	one := s.points(1)
	many := mat.NewDense(12, s.dim, nil)
	for i := range 12 {
		many.SetRow(i, one.RawRowView(0))
	}
	spread := s.points(12)
	for name, c := range map[string]struct {
		x *mat.Dense
		y []float64
	}{
		"one evaluation":        {one, []float64{0.5}},
		"one point, same value": {many, make([]float64, 12)},
		"one point, two values": {many, []float64{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1}},
		"equal outcomes":        {spread, make([]float64, 12)},
	} {
		m := s.fit(t, c.x, c.y)
		f := m.Fantasies()
		f.Believe(c.x) // points that have been evaluated already
		f.Believe(c.x)
		at := stack(c.x, s.points(5))
		mean, variance := f.Posterior(at)
		for i, v := range variance {
			if !(v > 0) || math.IsInf(v, 0) || math.IsNaN(mean[i]) || math.IsInf(mean[i], 0) {
				t.Errorf("%s: mean %v, variance %v", name, mean[i], v)
			}
		}
	}
}

func unchanged(t *testing.T, s *subject) {
	m, at := s.example(t)
	wantMean, wantVariance := m.Posterior(at)
	noise, lengths := m.Noise(), m.Lengthscales()
	if m.Len() != 20 || !(noise >= 0) || len(lengths) != s.dim {
		t.Errorf("%d evaluations, noise %v, %d lengthscales", m.Len(), noise, len(lengths))
	}
	m.Fantasies().Believe(s.points(3))
	lengths[0] = 99
	mean, variance := m.Posterior(at)
	if !slices.Equal(mean, wantMean) || !slices.Equal(variance, wantVariance) || m.Len() != 20 || m.Lengthscales()[0] == 99 {
		t.Error("adding fantasies has changed the surrogate")
	}
}
