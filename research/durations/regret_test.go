package main

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/research/tabulated"
	"github.com/fantasia-hpo/fantasia/study"
)

// small returns a table of the points 0 to 10. The loss of n is n, and its training takes 1 + n seconds.
func small(t *testing.T) *tabulated.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.jsonl.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(file)
	fmt.Fprintln(zip, `[{"name": "n", "values": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "ordered": true}]`)
	for n := range 11 {
		fmt.Fprintf(zip, `{"at": [%d], "losses": [%d, %d], "seconds": [%d, %d]}`+"\n", n, n, n, 1+n, 1+n)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := tabulated.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// The regret is 0 at the best point and 1 at the median, and a level is reached when the first trial within it has ended.
func TestRegrets(t *testing.T) {
	table := small(t)
	regrets := regretsOf(table)
	want := []float64{0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 1.8, 2}
	for i, v := range regrets {
		if d := v - want[i]; d < -1e-12 || d > 1e-12 {
			t.Fatalf("the regrets are %v, want %v", regrets, want)
		}
	}
	at := func(n float64, start, end float64) trial { return trial{study.Point{"n": n}, start, end} }
	r := &run{Budget: 30, Trials: []trial{at(5, 0, 6), at(1, 0, 9), at(2, 6, 8), at(0, 9, 12)}}
	for _, c := range []struct{ level, want float64 }{{1, 6}, {0.4, 8}, {0.2, 9}, {0.01, 12}, {-1, 30}} {
		if got := r.reach(table, regrets, c.level); got != c.want {
			t.Errorf("the regret %g is reached after %g, want %g", c.level, got, c.want)
		}
	}
}

// A study with a budget of time begins no trial after it. The budget is the time in which half of the trials of random search end.
func TestPlayBudget(t *testing.T) {
	table := small(t)
	whole, err := play(t.Context(), &game{Table: table, seed: 1}, "random", 2, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]float64, len(whole.Trials))
	for i, trial := range whole.Trials {
		ends[i] = trial.End
	}
	slices.Sort(ends)
	near := &game{Table: table, seed: 1, near: within(table, 1)}
	if r, err := playBudget(t.Context(), near, "random", 1, 10); err != nil || len(r.Trials) == 0 ||
		!near.near(r.Trials[len(r.Trials)-1].Point) || len(r.Trials) > 1 && near.near(r.Trials[0].Point) {
		t.Errorf("the run that ends near the best is %+v, %v", r, err)
	}
	for _, algorithm := range []string{"hebo", "hebo:cooled"} {
		r, err := playBudget(t.Context(), &game{Table: table, seed: 1}, algorithm, 2, 10)
		if err != nil {
			t.Fatal(err)
		}
		if r.Budget != ends[4] || len(r.Trials) == 0 {
			t.Errorf("%s has %d trials in %g seconds, want %g seconds", algorithm, len(r.Trials), r.Budget, ends[4])
		}
		for _, trial := range r.Trials {
			if trial.Start >= r.Budget {
				t.Errorf("%s begins a trial after %g seconds, and the budget is %g", algorithm, trial.Start, r.Budget)
			}
		}
	}
}
