package fantasia_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia"
)

// A model stops trials whose parameters and reports promise nothing, and lets the best one end.
func TestAModelStopsTrials(t *testing.T) {
	const last = 24
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 1)
	study, err := fantasia.Minimize(space, fantasia.Options{
		Trials: 24, Parallel: 2, Algorithm: fantasia.Algorithm{Name: "random"}, Seed: 1,
		EarlyStopping: fantasia.EarlyStopping{Name: "model", Settings: map[string]any{"maxSteps": last}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer study.Close()
	err = study.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
		loss := 0.0
		for step := 1; step <= last; step++ {
			loss = (x.Of(trial)-0.3)*(x.Of(trial)-0.3) + 0.2/float64(step)
			if err := trial.Report(step, loss); err != nil {
				return 0, err
			}
			select { // the decision is made beside the evaluation
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		return loss, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pruned := 0
	for trial, err := range study.Trials() {
		if err != nil {
			t.Fatal(err)
		}
		if trial.State != fantasia.Stopped {
			continue
		}
		pruned++
		if !strings.Contains(trial.Failure, "of 24 it is expected to end at ") {
			t.Errorf("trial %d is stopped, because %q", trial.Number, trial.Failure)
		}
	}
	best, err := study.Best()
	if pruned < 8 || err != nil || best.Value > 0.05 {
		t.Errorf("%d trials were stopped, and the best is %+v (%v)", pruned, best, err)
	}
}

// A trial that was stopped early is run to its end once all of Options.Trials have ended: alone, by the next Run.
func TestContinueAfterTheEnd(t *testing.T) {
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 1)
	study, err := fantasia.Minimize(space, fantasia.Options{
		Trials: 4, Parallel: 1, Algorithm: fantasia.Algorithm{Name: "random"}, Seed: 1,
		EarlyStopping: fantasia.EarlyStopping{Name: "threshold", Settings: map[string]any{"upper": 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer study.Close()
	var begun []float64
	run := func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
		begun = append(begun, x.Of(trial))
		if err := trial.Report(1, float64(9*(len(begun)%2))); err != nil { // the first and the third are stopped
			return 0, err
		}
		return x.Of(trial), ctx.Err()
	}
	if err := study.Run(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := study.Continue(2); !errors.Is(err, fantasia.ErrInvalid) {
		t.Errorf("to continue a trial that has completed: %v", err)
	}
	if err := study.Continue(3); err != nil {
		t.Fatal(err)
	}
	if err := study.Run(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	var states []fantasia.State
	for trial, err := range study.Trials() {
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, trial.State)
	}
	want := []fantasia.State{fantasia.Stopped, fantasia.Completed, fantasia.Stopped, fantasia.Completed, fantasia.Completed}
	if !slices.Equal(states, want) || len(begun) != 5 || begun[4] != begun[2] {
		t.Errorf("trials %v at %v, want %v and the last one at the third's point", states, begun, want)
	}
	best, err := study.Best()
	if err != nil || best.Value != min(begun[1], begun[3], begun[4]) {
		t.Errorf("the best is %+v (%v) of %v", best, err, begun)
	}
}
