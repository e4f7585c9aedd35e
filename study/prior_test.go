package study_test

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestUnitPrior(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		name     string
		of       study.Parameter
		mean, sd float64
	}{
		{"linear", study.Parameter{Type: study.Float, Scale: study.Linear, Min: v(-5), Max: v(5), Prior: &study.Prior{Mean: v(0), SD: v(2)}}, 0.5,
			0.2},
		// Four powers of ten, of which the sd is a half.
		{"log", study.Parameter{Type: study.Float, Scale: study.Log, Min: v(1e-5), Max: v(1e-1), Prior: &study.Prior{Mean: v(1e-3), SD: v(0.5)}},
			0.5, 0.125},
		// From −ln 9 to ln 9 in logits.
		{"logit", study.Parameter{Type: study.Float, Scale: study.Logit, Min: v(0.1), Max: v(0.9), Prior: &study.Prior{Mean: v(0.5), SD: v(1)}},
			0.5, 1 / (2 * math.Log(9))},
		// Eleven bins.
		{"int", study.Parameter{Type: study.Int, Scale: study.Linear, Min: v(0), Max: v(10), Prior: &study.Prior{Mean: v(0), SD: v(1)}}, 0.5 / 11,
			1. / 11},
	} {
		mean, sd, ok := c.of.UnitPrior()
		if !ok || math.Abs(mean-c.mean) > 1e-12 || math.Abs(sd-c.sd) > 1e-12 {
			t.Errorf("%s: %v ± %v (%v), want %v ± %v", c.name, mean, sd, ok, c.mean, c.sd)
		}
	}
	if _, _, ok := (study.Parameter{Type: study.Bool, Prior: &study.Prior{Weights: []float64{1, 2}}}).UnitPrior(); ok {
		t.Error("weights are taken for a normal prior")
	}
}
