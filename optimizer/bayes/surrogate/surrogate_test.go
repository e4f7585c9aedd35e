package surrogate

import (
	"fmt"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

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
			p.Observations = append(p.Observations, optimizer.Observation{Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{f.Value(f.Scale(u))}})
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
