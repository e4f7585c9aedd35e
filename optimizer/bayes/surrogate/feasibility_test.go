package surrogate

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// ended returns a study of the unit square with n observations at random points.
func ended(t *testing.T, n int, outcome func(x, y float64, rng *rand.Rand) optimizer.Outcome) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize}
	rng := rand.New(rand.NewPCG(3, 4))
	for range n {
		x, y := rng.Float64(), rng.Float64()
		p.Observations = append(p.Observations, optimizer.Observation{
			Point: study.Point{"x1": x, "x2": y}, Outcome: outcome(x, y, rng), Values: []float64{x},
		})
	}
	return p
}

func fitFeasibility(t *testing.T, p *optimizer.Problem) *Feasibility {
	t.Helper()
	return FitFeasibility(t.Context(), p, optimizer.NewEncoding(p.Space), nil, rand.New(rand.NewPCG(1, 1)))
}

// A region that cannot be evaluated is learnt, for any kind of failure.
func TestFeasibilityLearnsARegion(t *testing.T) {
	for _, kind := range []optimizer.Outcome{optimizer.OutcomeInfeasible, optimizer.OutcomeFailed} {
		f := fitFeasibility(t, ended(t, 60, func(x, _ float64, _ *rand.Rand) optimizer.Outcome {
			if x > 0.6 {
				return kind
			}
			return optimizer.OutcomeCompleted
		}))
		logP := f.LogProbability(mat.NewDense(2, 2, []float64{0.2, 0.5, 0.9, 0.5}))
		if math.Exp(logP[0]) < 0.85 || math.Exp(logP[1]) > 0.15 {
			t.Errorf(
				"%s: an evaluation completes with probability %.3f in the good part, and %.3f in the bad one", kind, math.Exp(logP[0]),
				math.Exp(logP[1]),
			)
		}
	}
}

// Random failures carry no information about places: the probability is everywhere
// about the share of evaluations that completed.
func TestFeasibilityOfChance(t *testing.T) {
	f := fitFeasibility(t, ended(t, 100, func(_, _ float64, rng *rand.Rand) optimizer.Outcome {
		if rng.Float64() < 1./3 {
			return optimizer.OutcomeFailed
		}
		return optimizer.OutcomeCompleted
	}))
	for i, logP := range f.LogProbability(mat.NewDense(4, 2, []float64{0.2, 0.5, 0.9, 0.5, 0, 0, 0.5, 1})) {
		if p := math.Exp(logP); p < 0.5 || p > 0.85 {
			t.Errorf("place %d: an evaluation completes with probability %.3f, two thirds do", i, p)
		}
	}
}

// Two kinds of failure multiply.
func TestFeasibilityOfTwoKinds(t *testing.T) {
	f := fitFeasibility(t, ended(t, 80, func(x, y float64, _ *rand.Rand) optimizer.Outcome {
		switch {
		case x > 0.7:
			return optimizer.OutcomeInfeasible
		case y > 0.7:
			return optimizer.OutcomeFailed
		}
		return optimizer.OutcomeCompleted
	}))
	if len(f.Hyperparameters()) != 2 {
		t.Errorf("hyperparameters of %d kinds of failure, want 2", len(f.Hyperparameters()))
	}
	logP := f.LogProbability(mat.NewDense(3, 2, []float64{0.3, 0.3, 0.9, 0.3, 0.3, 0.9}))
	if math.Exp(logP[0]) < 0.8 || math.Exp(logP[1]) > 0.3 || math.Exp(logP[2]) > 0.3 {
		t.Errorf("log probabilities %.3f", logP)
	}
}

func TestFeasibilityGradient(t *testing.T) {
	f := fitFeasibility(t, ended(t, 40, func(x, y float64, _ *rand.Rand) optimizer.Outcome {
		switch {
		case x+y > 1.3:
			return optimizer.OutcomeInfeasible
		case y < 0.2:
			return optimizer.OutcomeFailed
		}
		return optimizer.OutcomeCompleted
	}))
	for _, x := range [][]float64{{0.3, 0.4}, {0.7, 0.65}, {0.9, 0.9}, {0.5, 0.1}} {
		value, gradient := f.Gradient(mat.NewDense(1, 2, x))
		at := func(x []float64) float64 { return f.LogProbability(mat.NewDense(1, 2, x))[0] }
		want := fd.Gradient(nil, at, x, &fd.Settings{Formula: fd.Central})
		if !floats.EqualApprox(gradient.RawRowView(0), want, 1e-5*(1+floats.Norm(want, 2))) || math.Abs(value[0]-at(x)) > 1e-12 {
			t.Errorf("at %v: gradient %v, by differences %v; value %v, want %v", x, gradient.RawRowView(0), want, value[0], at(x))
		}
	}
}

// There is no model if all evaluations ended in the same way.
func TestNoFeasibility(t *testing.T) {
	for name, outcome := range map[string]optimizer.Outcome{
		"all completed": optimizer.OutcomeCompleted, "all failed": optimizer.OutcomeFailed, "all infeasible": optimizer.OutcomeInfeasible,
	} {
		if f := fitFeasibility(t, ended(t, 5, func(_, _ float64, _ *rand.Rand) optimizer.Outcome { return outcome })); f != nil {
			t.Errorf("%s: a model", name)
		}
	}
}

func TestEvenly(t *testing.T) {
	for _, n := range []int{0, 1, 399, 400, 401, 10_000} {
		chosen := evenly(n, 400)
		if len(chosen) != min(n, 400) {
			t.Errorf("%d of %d chosen", len(chosen), n)
		}
		for k, i := range chosen {
			if i < 0 || i >= n || k > 0 && i <= chosen[k-1] {
				t.Fatalf("of %d, place %d after %v", n, i, chosen[:k])
			}
		}
	}
}

func TestObserveWithoutFailures(t *testing.T) {
	p := ended(t, 30, func(x, _ float64, _ *rand.Rand) optimizer.Outcome {
		if x > 0.5 {
			return optimizer.OutcomeFailed
		}
		return optimizer.OutcomeCompleted
	})
	for _, failures := range []Failures{FailuresModel, FailuresIgnore} {
		d := Observe(p, optimizer.NewEncoding(p.Space), Options{Failures: failures})
		if len(d.Y) != d.Completed || len(d.Of) != d.Completed {
			t.Errorf("%s: %d rows of %d completed evaluations", failures, len(d.Y), d.Completed)
		}
		for row, i := range d.Of {
			if p.Observations[i].Outcome != optimizer.OutcomeCompleted || d.X.At(row, 0) > 0.5 {
				t.Errorf("%s: row %d is of %+v", failures, row, p.Observations[i])
			}
		}
	}
}
