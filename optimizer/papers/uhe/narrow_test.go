package uhe

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// The factors of A-GP-UCB by hand: √β = B(0)·g^d, and p(t) = t^0.9.
func TestNormBoundAndReference(t *testing.T) {
	for _, c := range []struct {
		g    float64
		dim  int
		want float64
	}{{1, 2, 1.96}, {1.5, 2, 4.41}, {2, 3, 15.68}, {10, 1, 19.6}, {100, 300, 1.96e6}} {
		if got := kappa(1.96, c.g, c.dim); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("kappa for g = %v in %d dimensions is %v, want %v", c.g, c.dim, got, c.want)
		}
	}
	// 32^0.9 = 2^4.5 = 16√2, and 100^0.9 = 10^1.8.
	for at, want := range map[int]float64{1: 1, 32: 16 * math.Sqrt2, 100: 63.0957344480193} {
		if got := reference(at); math.Abs(got-want) > 1e-9 {
			t.Errorf("p(%d) = %v, want %v", at, got, want)
		}
	}
}

// By hand: the 32nd point may have the regret 16√2 − 31^0.9 = 0.63740, which is the width
// 2·√β·sd for √β = 4 and sd = 0.079675.
func TestEnough(t *testing.T) {
	g := growth{Points: 31, Factor: 2}
	if g.enough(4, 0.0796) || !g.enough(4, 0.0798) {
		t.Error("a standard deviation of 0.0797 is the least that is enough")
	}
	if first := (growth{}); first.enough(1.96, 0.255) || !first.enough(1.96, 0.2552) {
		t.Error("for the first point 1/(2·1.96) = 0.2551 is the least that is enough")
	}
	for _, bad := range []growth{{Points: -1}, {Factor: 0.5}, {Factor: 101}} {
		if bad.valid() {
			t.Errorf("%+v is valid", bad)
		}
	}
}

// Division by 4 takes log 4 from the logarithms of the lengthscales, and leaves the
// variance and the noise as they are.
func TestNarrower(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize}
	p.Observations = []optimizer.Observation{
		{Trial: 1, Point: study.Point{"x1": 0.2, "x2": 0.3}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{1}},
		{Trial: 2, Point: study.Point{"x1": 0.7, "x2": 0.9}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{2}},
	}
	encoding := optimizer.NewEncoding(p.Space)
	m := newModel(encoding, observe(p, encoding), ShapeRate)
	got := m.narrower(&gp.Hyperparameters{Kernel: []float64{math.Log(2), math.Log(0.8), 0.7}, Noise: 0.1}, 4).Hyperparameters()
	for i, want := range []float64{math.Log(0.5), math.Log(0.2), 0.7} {
		if math.Abs(got.Kernel[i]-want) > 1e-12 {
			t.Errorf("hyperparameter %d is %v, want %v", i, got.Kernel[i], want)
		}
	}
	if got.Noise != 0.1 {
		t.Errorf("the noise is %v", got.Noise)
	}
	if m.narrower(nil, 2) != nil {
		t.Error("there is a model without hyperparameters")
	}
}

// Along a study, g never falls, and it ends its rise where the point's standard deviation
// under the lengthscales divided by g, which a process conditioned here repeats, gives it
// the regret p(t) − p(t−1), or where g has no room.
func TestGrowthOfAStudy(t *testing.T) {
	o := options(t, func(o *Options) { o.Method, o.Initial = Adaptive, 5 })
	s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 3)
	encoding := optimizer.NewEncoding(s.Problem.Space)
	var last growth
	rises := 0
	for trial := 1; trial <= 45; trial++ {
		known := s.Problem
		suggested := s.Ask(1)[0]
		s.Tell(trial, bowl(suggested.Point))
		m := readMemory(s.State, Adaptive, 3)
		now := m.Growth
		if trial <= 5 {
			continue
		}
		if now.Points != last.Points+1 || now.Factor < last.least() {
			t.Fatalf("trial %d: %+v after %+v", trial, now, last)
		}
		model := newModel(encoding, observe(&known, encoding), ShapeRate)
		h := gp.Hyperparameters{Kernel: append([]float64(nil), m.Fitted.Kernel...), Noise: m.Fitted.Noise}
		for c := range 2 {
			h.Kernel[c] -= math.Log(now.Factor)
		}
		process, err := gp.Condition(model.kernel, h, model.data.X, model.data.Y)
		if err != nil {
			t.Fatal(err)
		}
		_, variance := process.Posterior(mat.NewDense(1, 2, encoding.Encode(suggested.Point)))
		at := float64(now.Points)
		regret, want := 2*1.96*now.Factor*now.Factor*math.Sqrt(variance[0]), math.Pow(at, 0.9)-math.Pow(at-1, 0.9)
		if regret < want*(1-1e-6) && now.Factor < mostGrown/1.1 {
			t.Errorf("trial %d: g = %v allows for the regret %v, want %v", trial, now.Factor, regret, want)
		}
		if now.Factor > last.least() {
			rises++
		}
		last = now
	}
	if last.Points != 40 || rises == 0 {
		t.Errorf("%d points by the model, want 40; g rose %d times, want it to", last.Points, rises)
	}
}
