package surrogate

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// A model under remembered hyperparameters is the one that the search for them ended with, also
// when that chose the outcomes without their power transform.
func TestCondition(t *testing.T) {
	chosen := map[bool]int{}
	for name, value := range map[string]func(u float64) float64{
		"skewed":  func(u float64) float64 { return math.Exp(6 * u) },
		"a slope": func(u float64) float64 { return 3 * u },
	} {
		rng := optimizer.NewRand(1, 1)
		p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize}
		for range 30 {
			u := []float64{rng.Float64(), rng.Float64()}
			p.Observations = append(p.Observations, optimizer.Observation{
				Point: study.Point{"x1": u[0], "x2": u[1]}, Outcome: optimizer.OutcomeCompleted, Values: []float64{value(u[0]) + 0.1*u[1]},
			})
		}
		o := DefaultOptions()
		d := Observe(p, optimizer.NewEncoding(p.Space), o)
		found, err := Fit(t.Context(), d, o, nil, rng)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Condition(d, o, found.GP.Hyperparameters(), found.Plain())
		if err != nil {
			t.Fatal(err)
		}
		chosen[found.Plain()]++
		x := mat.NewDense(2, 2, []float64{0.3, 0.4, 0.9, 0.1})
		mean, variance := found.GP.Posterior(x)
		sameMean, sameVariance := again.GP.Posterior(x)
		for i := range mean {
			if math.Abs(mean[i]-sameMean[i]) > 1e-9 || math.Abs(variance[i]-sameVariance[i]) > 1e-9 || again.Data.Y[i] != found.Data.Y[i] {
				t.Errorf("%s: %g and %g at row %d, the search ended with %g and %g", name, sameMean[i], sameVariance[i], i, mean[i], variance[i])
			}
		}
	}
	if chosen[true] == 0 || chosen[false] == 0 {
		t.Errorf("models without the transform, and with it: %d, %d; want both", chosen[true], chosen[false])
	}
}

// A full search finds hyperparameters at least as likely as those found by a few steps
// from the last fit, and sometimes more likely ones.
func TestEffort(t *testing.T) {
	f, err := testfunc.Get("rosenbrock-5")
	if err != nil {
		t.Fatal(err)
	}
	rng := optimizer.NewRand(1, 1)
	p := &optimizer.Problem{Space: optimizertest.Cube(t, f.Dim(), 0, 1), Direction: study.Minimize}
	var warm *gp.Hyperparameters
	better := false
	for n := 16; n <= 64; n += 16 {
		for len(p.Observations) < n {
			u, point := make([]float64, f.Dim()), study.Point{}
			for i := range u {
				u[i] = rng.Float64()
				point[fmt.Sprintf("x%d", i+1)] = u[i]
			}
			p.Observations = append(
				p.Observations, optimizer.Observation{Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{f.Value(f.Scale(u))}},
			)
		}
		fit := func(effort Effort) *Model {
			o := DefaultOptions()
			o.Effort = effort
			m, err := Fit(t.Context(), Observe(p, optimizer.NewEncoding(p.Space), o), o, warm, optimizer.NewRand(1, 2))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		few, full := fit(EffortWarm), fit(EffortFull)
		if full.evidence < few.evidence-1e-3 {
			t.Errorf("%d observations: a full search ends at %g, a few steps at %g", n, full.evidence, few.evidence)
		}
		better = better || full.evidence > few.evidence+0.1
		h := few.GP.Hyperparameters()
		warm = &h
	}
	if !better {
		t.Error("a full search is never better than a few steps")
	}
}
