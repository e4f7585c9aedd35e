package main

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/uhe"
	"github.com/fantasia-hpo/fantasia/research/lines"
)

// A file keeps each run, and the next call plays only what it lacks.
func TestRunsAreKept(t *testing.T) {
	f := functions{
		names: []string{"branin"}, methods: []string{"uhe", chance}, priors: []uhe.Prior{uhe.ShapeRate, uhe.MeanVariance},
		seeds: 1, trials: 8, keep: filepath.Join(t.TempDir(), "runs.jsonl"),
	}
	var before []played
	for seeds := 1; seeds <= 2; seeds++ {
		f.seeds = seeds
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept, err := lines.Read[played](f.keep)
		if err != nil || len(kept) != 4*seeds {
			t.Fatalf("%d runs of %d seeds, %v; want 4 a seed", len(kept), seeds, err)
		}
		for i, p := range before {
			if kept[i] != p {
				t.Errorf("run %d is %+v, and was %+v", i, kept[i], p)
			}
		}
		for _, p := range kept {
			if !(p.Error > 0) || !(p.Regret >= 0) || math.IsInf(p.Error+p.Regret, 0) {
				t.Errorf("a run found %+v", p)
			}
		}
		before = kept
	}
	if before[0].Function != "branin" || before[0].Method != "uhe" || before[4].Seed != 1 {
		t.Errorf("the runs begin with %+v, and seed 1 with %+v", before[0], before[4])
	}
}

// Random points do not depend on the prior, so their regret is the same under both.
func TestSeedsArePaired(t *testing.T) {
	var regrets []float64
	for _, prior := range []uhe.Prior{uhe.ShapeRate, uhe.MeanVariance} {
		p := played{Function: "hartmann3", Method: chance, Prior: prior, Seed: 4, Trials: 10}
		if err := p.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		regrets = append(regrets, p.Regret)
	}
	if regrets[0] != regrets[1] {
		t.Errorf("random points have the regrets %v", regrets)
	}
}

// Of 1, 2 and 3 the mean is 2, the standard error 1/√3, and Student's t with two degrees of
// freedom has the 97.5% quantile 4.3027 (from printed tables).
func TestInterval(t *testing.T) {
	mean, low, high := interval([]float64{1, 2, 3})
	if half := 4.3027 / math.Sqrt(3); mean != 2 || math.Abs(high-2-half) > 1e-4 || math.Abs(2-low-half) > 1e-4 {
		t.Errorf("the interval of %v is %v to %v, want ± %v", mean, low, high, half)
	}
}
