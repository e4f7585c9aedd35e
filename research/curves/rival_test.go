package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/peer"
)

// pausing plays a tuner that trains each trial for two epochs, and then goes on with the best one that waits: after each second new
// trial, or if no training is left. It returns what it was told of trials, and where they were.
func pausing(t *testing.T, in io.Reader, out io.Writer, dim int) (told []epoch, began []begun) {
	t.Helper()
	lines, answer := json.NewDecoder(in), json.NewEncoder(out)
	say := func(what any) {
		if err := answer.Encode(what); err != nil {
			t.Errorf("answer: %v", err)
		}
	}
	var first about
	if err := lines.Decode(&first); err != nil || first.Tuner != "pausing" || first.Dim != dim {
		t.Errorf("introduced as %+v, %v", first, err)
	}
	waits := map[int]float64{} // by trial
	resumed := false
	for {
		var request struct{ Done *epoch }
		if lines.Decode(&request) != nil {
			return told, began
		}
		if done := request.Done; done != nil {
			told = append(told, *done)
			if !done.Last && done.Step%2 == 1 {
				say(begun{Trial: done.Trial})
				continue
			}
			if !done.Last && done.Loss != nil {
				waits[done.Trial] = *done.Loss
			}
		}
		resumed = !resumed && len(waits) > 0
		if !resumed {
			say(begun{X: make([]float64, dim)})
			var b begun
			if err := lines.Decode(&b); err != nil {
				t.Errorf("where it begins: %v", err)
			}
			if b.Trial > 0 {
				began = append(began, b)
				continue
			}
		}
		best := begun{}
		for trial, loss := range waits {
			if best.Trial == 0 || loss < waits[best.Trial] {
				best.Trial = trial
			}
		}
		delete(waits, best.Trial)
		say(best)
	}
}

// A tuner in a process of its own begins trials where the trainings are, and goes on with those that it has paused from where they
// were: each epoch is told once, in its order, with its loss and the best one so far.
func TestRivalPausesAndGoesOn(t *testing.T) {
	p, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(p, 1, []int{2, 8, 100})
	if err != nil {
		t.Fatal(err)
	}
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	r := &rival{w, peer.New(ourOut, ourIn, func() error { return nil })}
	ended := make(chan struct{})
	var told []epoch
	var began []begun
	go func() {
		defer close(ended)
		told, began = pausing(t, theirIn, theirOut, w.encoding.Dim())
	}()
	if err := r.introduce("pausing"); err != nil {
		t.Fatal(err)
	}
	played, err := w.play(t.Context(), 4, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if played.Trials != 80 || len(began) != 80 {
		t.Errorf("%d trials of 80 trainings, %d were told where they are", played.Trials, len(began))
	}
	for i, b := range began {
		if b.Trial != i+1 || !slices.Equal(b.X, w.trials[i].x) {
			t.Errorf("trial %d is at %v, was told to be at %v", b.Trial, w.trials[i].x, b.X)
		}
	}
	steps, interrupted, last := map[int]int{}, 0, 0
	for _, e := range told {
		trial := w.trials[e.Trial-1]
		steps[e.Trial]++
		if e.Step != steps[e.Trial] || e.Last != (e.Step == 24) {
			t.Fatalf("trial %d reports %+v after %d epochs", e.Trial, e, steps[e.Trial]-1)
		}
		loss := trial.losses[e.Step-1]
		if e.Loss == nil != math.IsNaN(loss) || e.Loss != nil && *e.Loss != loss || *e.Value != trial.leastOf(trial.losses[:e.Step]) {
			t.Errorf("trial %d reports %+v, want the loss %v", e.Trial, e, loss)
		}
		if e.Trial < last && e.Step > 2 && e.Step%2 == 1 {
			interrupted++
		}
		last = e.Trial
	}
	if interrupted == 0 {
		t.Error("no trial went on after one that began later")
	}
	if played.Regret[2] > played.Regret[0] {
		t.Errorf("the regrets are %v", played.Regret)
	}
}

// What a tuner cannot go on with is an error, which says why.
func TestRivalGoesOnWithWhatItCan(t *testing.T) {
	p, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(p, 1, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	r := &rival{world: w}
	waits, runs, ended := w.begin(make([]float64, 8)), w.begin(make([]float64, 8)), w.begin(make([]float64, 8))
	waits.step, runs.running, ended.step = 4, true, 24
	if got, until, err := r.goesOn(1); err != nil || got != waits || until != 5 {
		t.Errorf("trial 1 waits after 4 epochs: %v until %d, %v", got, until, err)
	}
	for _, number := range []int{-1, 2, 3, 4} {
		if got, _, err := r.goesOn(number); err == nil {
			t.Errorf("goes on with trial %d: %+v", number, got)
		}
	}
	if got, _, err := r.goesOn(0); err != nil || got != nil {
		t.Errorf("a worker that has nothing to do: %v, %v", got, err)
	}
}

// The comparison is over the runs that both tuners have: times as ratios, one that never came near counting as all that was played.
func TestReportRivals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	write := func(r result) {
		if err := lines.Append(path, &r); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range 6 {
		write(result{Tuner: "mine", Task: "a", Seed: seed, Regret: []float64{0.5, 0.25, 0.125, 0}, Near: 5})
		write(result{Tuner: "slow", Task: "a", Seed: seed, Regret: []float64{0.75, 0.5, 0.5, 0.5}})
		if seed < 5 {
			write(result{Tuner: "fast", Task: "a", Seed: seed, Regret: []float64{0.5, 0.25, 0, 0}, Near: 2.5})
		}
		write(result{Tuner: "short", Task: "a", Seed: seed, Regret: []float64{1, 1}, Near: 10})
		if seed < 4 {
			write(result{Tuner: "few", Task: "a", Seed: seed, Regret: []float64{0.5, 0.25, 0, 0}, Near: 20})
		}
	}
	write(result{Tuner: "mine", Task: "b", Regret: []float64{0, 0, 0, 0}, Near: 1})
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.jsonl.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := reportRivals(&b, path, folder, "mine"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `mine` | 6 | 0.50 | 0.25 | 0.12 | 0.00 | 6 | 5.0 | | | | | |\n",
		"| `slow` | 6 | 0.75 | 0.50 | 0.50 | 0.50 | 0 | 40.0 | 8.00 (8.00 to 8.00) | 0.25 (0.25 to 0.25) | 0.25 (0.25 to 0.25) | 0.38 ",
		"| `fast` | 5 | 0.50 | 0.25 | 0.00 | 0.00 | 5 | 2.5 | 0.50 (0.50 to 0.50) | 0.00 (0.00 to 0.00) | 0.00 (0.00 to 0.00) | -0.12 ",
		"| `short` | 6 | 1.00 | 1.00 | | | 6 | 10.0 | 2.00 (2.00 to 2.00) | 0.50 (0.50 to 0.50) | 0.75 (0.75 to 0.75) | | |\n",
		"| `few` | 4 | 0.50 | 0.25 | 0.00 | 0.00 | 4 | 20.0 | too few runs | too few runs |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := reportRivals(&b, path, "", "mine"); err != nil || !strings.Contains(b.String(), "| `mine` | 7 |") {
		t.Errorf("on all tasks, %v:\n%s", err, b.String())
	}
	if err := reportRivals(&b, path, folder, "nobody"); err == nil {
		t.Error("a tuner without runs is accepted")
	}
	if err := report(io.Discard, path); err == nil || !strings.Contains(err.Error(), "short end before 40 trainings' worth") {
		t.Errorf("without -against: %v", err)
	}
}
