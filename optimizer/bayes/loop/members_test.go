package loop

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// ensemble returns a loop over processes with different lengthscales.
func ensemble(t *testing.T, by bayes.Acquisition) *Loop {
	t.Helper()
	x := mat.NewDense(5, 2, []float64{0.1, 0.2, 0.7, 0.3, 0.4, 0.9, 0.8, 0.8, 0.3, 0.5})
	y := []float64{0.3, -0.6, 1.2, 0.1, -0.2}
	l := &Loop{Input: Input{Criterion: by}}
	for i, length := range []float64{-1.5, -1, 0.2} {
		m, err := gp.Condition(
			kernel.NewMatern52(kernel.Continuous(2)), gp.Hyperparameters{Kernel: []float64{length, length, 0}, Noise: 1e-3}, x, y,
		)
		if err != nil {
			t.Fatal(err)
		}
		member := &Member{Model: bayes.Gaussian(m), Fantasies: bayes.Gaussian(m).Fantasies()}
		member.Known.Incumbent = -0.6 + 0.05*float64(i)
		l.Others = append(l.Others, member)
	}
	l.Main, l.Others = l.Others[0], l.Others[1:]
	return l
}

// The expected improvement and a bound are averaged over the members, and their gradients
// are those of the averages, by finite differences.
func TestAverageOverMembers(t *testing.T) {
	for _, by := range []bayes.Acquisition{acquisition.EI{Latent: true}, acquisition.UCB{Kappa: 2}} {
		l := ensemble(t, by)
		at := func(p []float64) float64 {
			var sum float64
			for _, m := range l.members() {
				mean, variance := m.Fantasies.Posterior(mat.NewDense(1, 2, p))
				v := by.Value(&m.Known, mean[0], variance[0])
				if !by.Reward() {
					v = math.Exp(v)
				}
				sum += v / 3
			}
			if !by.Reward() {
				return math.Log(sum)
			}
			return sum
		}
		for _, p := range [][]float64{{0.5, 0.5}, {0.15, 0.9}, {0.95, 0.05}} {
			x := mat.NewDense(1, 2, p)
			if got := l.score(l.posteriors(x), 0); math.Abs(got-at(p)) > 1e-9 {
				t.Errorf("%s at %v: %v, want %v", by.Name(), p, got, at(p))
			}
			values, gradients := l.slopes(x)
			want := fd.Gradient(nil, at, p, &fd.Settings{Formula: fd.Central})
			if math.Abs(values[0]-at(p)) > 1e-9 || !floats.EqualApprox(gradients[0], want, 1e-4*(1+floats.Norm(want, 2))) {
				t.Errorf("%s at %v: %v with gradient %v, want %v with %v", by.Name(), p, values[0], gradients[0], at(p), want)
			}
		}
	}
}

// The moments of the mixture by the law of total variance.
func TestMixtureMoments(t *testing.T) {
	of := []posterior{
		{[]float64{1}, []float64{0.5}},
		{[]float64{3}, []float64{1.5}},
	}
	if mean, variance := moments(of, 0); mean != 2 || variance != 2 {
		t.Errorf("mean %v and variance %v, want 2 and 1 + 1", mean, variance)
	}
}

// The incumbent of exact evaluations is the lowest observed outcome, that of others the
// lowest posterior mean at an observed point.
func TestIncumbents(t *testing.T) {
	x := mat.NewDense(4, 1, []float64{0.1, 0.12, 0.5, 0.9})
	y := []float64{-1.5, 0.9, 0.2, 0.4} // the lowest one is beside a much higher one
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(1)), gp.Hyperparameters{Kernel: []float64{-1, 0}, Noise: 0.5}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	mean, _ := m.Posterior(x)
	for exact, want := range map[bool]float64{true: -1.5, false: slices.Min(mean)} {
		l := &Loop{Input: Input{Data: &surrogate.Data{X: x, Y: y}}, Options: Options{Exact: exact}, Evaluated: len(y)}
		for i := range y {
			l.known = append(l.known, Place{X: x.RawRowView(i)})
		}
		l.Main = newMember(bayes.Gaussian(m))
		l.cacheCandidates()
		l.refresh()
		if got := l.Main.Known.Incumbent; math.Abs(got-want) > 1e-9 {
			t.Errorf("exact %t: the incumbent is %v, want %v", exact, got, want)
		}
	}
	if slices.Min(mean) < -1 {
		t.Errorf("the lowest mean %v is no test, since it is near the lowest outcome", slices.Min(mean))
	}
}
