package main

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"slices"
	"testing"
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
	r := &rival{w, &peer{in: ourOut, out: bufio.NewReader(ourIn), wait: func() error { return nil }}}
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
