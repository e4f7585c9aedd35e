package library_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fantasia-hpo/fantasia"
)

// Trials run at once, as many as Parallel says and no more.
func TestParallel(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := b.minimize(t, space, fantasia.Options{Parallel: 3, Trials: 12, Algorithm: random})
		var now, most atomic.Int32
		var together sync.WaitGroup
		together.Add(3)
		err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if trial.Number() <= 3 { // the first three wait for each other
				together.Done()
				together.Wait()
			}
			return x.Of(trial), nil
		})
		if err != nil || most.Load() != 3 {
			t.Errorf("at most %d trials at once and %v, want 3", most.Load(), err)
		}
		if n := count(t, u, fantasia.Completed); n != 12 {
			t.Errorf("%d trials, want 12", n)
		}
	})
}

// How a trial ends depends on the objective's error.
func TestOutcomes(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := b.minimize(t, space, fantasia.Options{Trials: 5, Algorithm: random})
		boom := errors.New("boom")
		results := []error{nil, boom, fantasia.ErrInfeasible, nil, fantasia.ErrInterrupted, nil}
		values := []float64{1, 0, 0, math.NaN(), 0, 2}
		calls := 0
		if err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (float64, error) {
			calls++
			return values[calls-1], results[calls-1]
		}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(r.State)+" "+r.Failure)
			if r.State == fantasia.Completed == math.IsNaN(r.Value) {
				t.Errorf("trial %d is %s with %v", r.Number, r.State, r.Value)
			}
			if v := x.Of(r); v < 0 || v > 1 {
				t.Errorf("x = %v", v)
			}
		}
		if len(got) != 5 || got[0] != "COMPLETED " || got[1] != "FAILED boom" || got[2] != "INFEASIBLE infeasible" ||
			got[3] != "INFEASIBLE completed without a finite value" || got[4] != "COMPLETED " || calls != 6 {
			t.Errorf("%d calls, trials %q", calls, got)
		}
		if best, err := u.Best(); err != nil || best.Number != 1 {
			t.Errorf("the best trial is %d", best.Number)
		}
	})
}

// A study of which every trial fails ends with the failure.
func TestStudyFails(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, _ := line()
		u := b.minimize(t, space, fantasia.Options{Algorithm: random})
		err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (float64, error) { return 0, errors.New("no data") })
		if !errors.Is(err, fantasia.ErrFailed) || !strings.Contains(err.Error(), "no data") {
			t.Errorf("Run: %v, want ErrFailed with the failure", err)
		}
		if _, err := u.Best(); !errors.Is(err, fantasia.ErrNothing) {
			t.Errorf("Best: %v", err)
		}
		if _, err := u.Recommended(t.Context()); !errors.Is(err, fantasia.ErrNothing) {
			t.Errorf("Recommended: %v", err)
		}
	})
}

// Run called again goes on with a study that has failed, also after it was opened again: its cause was mended.
func TestRunGoesOnWithAFailedStudy(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		var log strings.Builder
		u := b.minimize(t, space, fantasia.Options{Algorithm: random, Trials: 9, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 { // whose failures count anew
			err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (float64, error) { return 0, errors.New("no data") })
			if !errors.Is(err, fantasia.ErrFailed) {
				t.Fatalf("Run: %v, want ErrFailed", err)
			}
		}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) { return x.Of(trial), nil }); err != nil {
			t.Fatalf("Run, once the cause was mended: %v", err)
		}
		if failed, completed := count(t, u, fantasia.Failed), count(t, u, fantasia.Completed); failed != 6 || completed != 3 {
			t.Errorf("%d trials failed and %d completed; want 6 and the 3 that are left of 9", failed, completed)
		}
		if !strings.Contains(log.String(), "the study had failed, and goes on") {
			t.Errorf("the log does not say that the study goes on: %s", &log)
		}
		err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (float64, error) { return 0, nil })
		if err != nil {
			t.Errorf("Run of a completed study: %v", err)
		}
	})
}

// A cancelled Run hands its trials back, and the next one evaluates them.
func TestCancelledRun(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := b.minimize(t, space, fantasia.Options{Trials: 4, Parallel: 2, Algorithm: random})
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := u.Run(ctx, func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
			if trial.Number() == 2 {
				cancel(why)
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, why) {
			t.Errorf("Run: %v, want the cause", err)
		}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) { return x.Of(trial), nil }); err != nil {
			t.Fatal(err)
		}
		if n := count(t, u, fantasia.Completed); n != 4 {
			t.Errorf("%d trials, want 4", n)
		}
	})
}

// When the goal is reached, the contexts of the other trials end.
func TestGoal(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, _ := line()
		goal := 1.0
		u := b.minimize(t, space, fantasia.Options{Trials: 100, Parallel: 2, Goal: &goal, Algorithm: random})
		both := make(chan struct{})
		err := u.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
			if trial.Number() == 2 {
				close(both)
				for step := 1; trial.Report(step, 0.75) == nil; step++ { // an answer says that the study has ended
				}
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), fantasia.ErrEnded) || !trial.ShouldStop() || !errors.Is(trial.Report(1, 0), fantasia.ErrEnded) {
					t.Errorf("the other trial ends with %v", context.Cause(ctx))
				}
				return 0, context.Cause(ctx)
			}
			<-both
			return 0.5, nil
		})
		if err != nil || count(t, u, fantasia.Completed) != 1 || count(t, u, fantasia.Cancelled) != 1 {
			t.Errorf("Run: %v", err)
		}
		if _, err := u.Ask(t.Context()); !errors.Is(err, fantasia.ErrEnded) || !strings.Contains(err.Error(), "goal") {
			t.Errorf("Ask after the end: %v", err)
		}
	})
}

// Points of the user are checked, and evaluated before others.
func TestPointsOfTheUser(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		n := space.Int("n", 1, 9)
		_, foreign := line()
		u := b.minimize(t, space, fantasia.Options{Trials: 3, Algorithm: random, Initial: [][]fantasia.Assignment{{n.Is(7)}}})
		for _, err := range []error{u.Enqueue(x.Is(2), n.Is(1)), u.Enqueue(x.Is(0)), u.Enqueue(foreign.Is(0), n.Is(1)),
			u.Add(math.NaN(), x.Is(0), n.Is(1))} {
			if !errors.Is(err, fantasia.ErrInvalid) {
				t.Errorf("a wrong point: %v", err)
			}
		}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			if trial.Number() == 1 && n.Of(trial) != 7 {
				t.Errorf("the first trial is %v", trial.Values())
			}
			return x.Of(trial), nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := u.Enqueue(x.Is(0), n.Is(1)); !errors.Is(err, fantasia.ErrEnded) {
			t.Errorf("Enqueue after the end: %v", err)
		}
		if _, err := u.Curve(9); !errors.Is(err, fantasia.ErrInvalid) {
			t.Errorf("Curve of no trial: %v", err)
		}
		defer func() {
			if p := recover(); p == nil {
				t.Error("a parameter of another space has a value")
			}
		}()
		best, _ := u.Best()
		foreign.Of(best)
	})
}

// Progress tells of each trial once and in order, one call at a time, and may use the study.
func TestProgress(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		var u *fantasia.Study
		var busy sync.Mutex
		ended := 0
		u = b.minimize(t, space, fantasia.Options{Trials: 20, Parallel: 4, Algorithm: random, Progress: func(p fantasia.Progress) {
			if !busy.TryLock() {
				t.Error("two calls at once")
				return
			}
			defer busy.Unlock()
			if p.Trial.State != fantasia.Completed || p.Trials != 20 || p.Best.Value > p.Trial.Value {
				t.Errorf("progress %+v", p)
			}
			if ended++; ended == 1 {
				if err := u.Add(-1, x.Is(0)); err != nil {
					t.Error(err)
				}
			}
		}})
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) { return x.Of(trial), nil }); err != nil {
			t.Fatal(err)
		}
		if ended != 21 {
			t.Errorf("%d calls, want 21", ended)
		}
	})
}

// A fidelity is not searched: few trials get to its highest level.
func TestFidelity(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		epochs := space.Fidelity("epochs", 1, 9, 3)
		u := b.minimize(t, space, fantasia.Options{Trials: 26, Algorithm: random})
		levels := map[int]int{}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			levels[epochs.Of(trial)]++
			return x.Of(trial), nil
		}); err != nil {
			t.Fatal(err)
		}
		if levels[1] <= levels[3] || levels[3] <= levels[9] || levels[9] == 0 {
			t.Errorf("trials by level: %v", levels)
		}
	})
}

// Trials that report worse values than others are stopped early, and what was reported is kept.
func TestEarlyStopping(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := b.minimize(t, space, fantasia.Options{
			Trials: 12, Algorithm: random, EarlyStopping: fantasia.EarlyStopping{Name: "percentile", Settings: map[string]any{"minCompleted": 2}},
		})
		steps := map[int]int{}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			for step := 1; step <= 8; step++ {
				steps[trial.Number()] = step
				if err := trial.Report(step, x.Of(trial)); err != nil {
					return 0, err
				}
			}
			return x.Of(trial), nil
		}); err != nil {
			t.Fatal(err)
		}
		if stopped, completed := count(t, u, fantasia.Stopped), count(t, u, fantasia.Completed); stopped == 0 || stopped+completed != 12 {
			t.Errorf("%d trials were stopped and %d completed, of 12", stopped, completed)
		}
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
			curve, err := u.Curve(r.Number)
			if err != nil || len(curve) == 0 || len(curve) > steps[r.Number] || r.State == fantasia.Completed && len(curve) != 8 {
				t.Errorf("trial %d is %s after %d steps and has the curve %v, %v", r.Number, r.State, steps[r.Number], curve, err)
			}
			for i, m := range curve {
				if m.Step != i+1 || m.Value != x.Of(r) {
					t.Errorf("trial %d: point %d of the curve is %v, want step %d and %v", r.Number, i, m, i+1, x.Of(r))
				}
			}
			if r.State == fantasia.Stopped && r.Failure == "" {
				t.Errorf("trial %d does not say why it was stopped", r.Number)
			}
		}
	})
}

// A trial that was stopped early is run to its end by another one, which is not stopped.
func TestContinue(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := b.minimize(t, space, fantasia.Options{
			Trials: 12, Algorithm: random, EarlyStopping: fantasia.EarlyStopping{Name: "percentile", Settings: map[string]any{"minCompleted": 2}},
		})
		stopped, ends := 0, map[float64]int{}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			for r, err := range u.Trials() {
				if err != nil {
					return 0, err
				}
				if stopped == 0 && r.State == fantasia.Stopped {
					stopped = r.Number
					if err := u.Continue(stopped); err != nil {
						t.Errorf("continue trial %d: %v", stopped, err)
					}
					for _, other := range []int{-1, 99, trial.Number(), stopped} {
						if err := u.Continue(other); !errors.Is(err, fantasia.ErrInvalid) || errors.Is(err, fantasia.ErrEnded) {
							t.Errorf("continue trial %d: %v", other, err)
						}
					}
				}
			}
			for step := 1; step <= 8; step++ {
				ends[x.Of(trial)] = step
				if err := trial.Report(step, x.Of(trial)); err != nil {
					return 0, err
				}
			}
			return x.Of(trial), nil
		}); err != nil {
			t.Fatal(err)
		}
		var from, to fantasia.Result
		other := 0
		for r, err := range u.Trials() {
			switch {
			case err != nil:
				t.Fatal(err)
			case r.Number == stopped:
				from = r
			case r.State == fantasia.Stopped:
				other = r.Number
			case r.Source == "requested":
				to = r
			}
		}
		if from.Number == 0 || to.Number == 0 || to.State != fantasia.Completed || x.Of(to) != x.Of(from) || ends[x.Of(to)] != 8 {
			t.Errorf("trial %+v was stopped, and continued by %+v", from, to)
		}
		if err := u.Continue(stopped); !errors.Is(err, fantasia.ErrInvalid) {
			t.Errorf("continue trial %d again: %v", stopped, err)
		}
		if other == 0 {
			t.Fatal("no other trial was stopped")
		}
		if err := u.Continue(other); err != nil {
			t.Fatalf("continue trial %d of a study that has ended: %v", other, err)
		}
		evaluated := 0
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			evaluated++
			return x.Of(trial), nil
		}); err != nil || evaluated != 1 {
			t.Errorf("after the end %d trials were evaluated, want 1: %v", evaluated, err)
		}
	})
}

// Only points that meet a constraint are evaluated; conditional parameters are active where their
// condition holds; values have the types of their parameters.
func TestPointsAreOfTheSpace(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space := fantasia.NewSpace()
		least, most := space.Int("least", 1, 50), space.Int("most", 1, 50)
		kind := space.Choice("kind", []string{"a", "b"})
		size := fantasia.OneOf(space, "size", []int{8, 16, 32})
		fine := space.Bool("fine", fantasia.When(kind, "b"))
		space.Require("least < most", func(p fantasia.Point) bool { return least.Of(p) < most.Of(p) }, least, most)
		u := b.minimize(t, space, fantasia.Options{Trials: 12, Algorithm: random})
		check := func(at fantasia.At, values map[string]any) {
			if least.Of(at) >= most.Of(at) {
				t.Errorf("the point %v does not meet the constraint", values)
			}
			if _, active := fine.Lookup(at); active != (kind.Of(at) == "b") {
				t.Errorf("fine is active: %t, at %v", active, values)
			}
			if n, is := values["size"].(int64); !is || int(n) != size.Of(at) {
				t.Errorf("size is %v of type %[1]T, want an int64", values["size"])
			}
		}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			check(trial, trial.Values())
			return float64(least.Of(trial)), nil
		}); err != nil {
			t.Fatal(err)
		}
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
			check(r, r.Values())
		}
	})
}

// Points of the user come first, and the recommended trial is one that has completed.
func TestEnqueueAddAndRecommend(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := b.minimize(t, space, fantasia.Options{Trials: 4, Algorithm: fantasia.Algorithm{Name: "gp"}})
		if err := errors.Join(u.Enqueue(x.Is(0.25)), u.Add(9, x.Is(0.75))); err != nil {
			t.Fatal(err)
		}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			return math.Pow(x.Of(trial)-0.3, 2), nil
		}); err != nil {
			t.Fatal(err)
		}
		sources := map[string]fantasia.Result{}
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
			sources[r.Source] = r
		}
		if r := sources["requested"]; x.Of(r) != 0.25 || r.State != fantasia.Completed || r.Ended.IsZero() {
			t.Errorf("the requested trial is %+v", r)
		}
		if r := sources["added"]; x.Of(r) != 0.75 || r.Value != 9 {
			t.Errorf("the added trial is %+v", r)
		}
		best, err := u.Best()
		if err != nil {
			t.Fatal(err)
		}
		r, err := u.Recommended(t.Context())
		if err != nil || r.Trial.State != fantasia.Completed || r.Trial.Value > best.Value+0.1 {
			t.Errorf("recommended is %+v, %v; the best trial is %+v", r, err, best)
		}
	})
}
