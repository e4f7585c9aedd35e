package fantasia_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fantasia-hpo/fantasia"
)

// random is the fastest algorithm.
var random = fantasia.Algorithm{Name: "random"}

// line returns a space of one parameter from 0 to 1.
func line() (*fantasia.Space, fantasia.Param[float64]) {
	space := fantasia.NewSpace()
	return space, space.Float("x", 0, 1)
}

// minimize opens a study that ends with the test.
func minimize(t testing.TB, space *fantasia.Space, o fantasia.Options) *fantasia.Study {
	t.Helper()
	u, err := fantasia.Minimize(space, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

func TestWrongStudiesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		space   func(*fantasia.Space)
		options fantasia.Options
		want    string
	}{
		"range": {func(s *fantasia.Space) { s.Float("a", 2, 1) }, fantasia.Options{}, "parameters[1]"},
		"scale": {func(s *fantasia.Space) { s.Float("a", 0, 1, fantasia.Log) }, fantasia.Options{}, "parameters[1]"},
		"twice": {func(s *fantasia.Space) { s.Bool("x") }, fantasia.Options{}, "x"},
		"constraint": {func(s *fantasia.Space) {
			s.Require("never", func(fantasia.Point) bool { return false }, s.Float("a", 0, 1))
		}, fantasia.Options{}, `"never": no point meets it`},
		"no parameter": {func(s *fantasia.Space) { s.Require("text", func(fantasia.Point) bool { return true }) }, fantasia.Options{}, "names no parameter"},
		"name":         {nil, fantasia.Options{Name: "A b"}, "Options.Name is A b; want"},
		"parallel":     {nil, fantasia.Options{Parallel: -1}, "Options.Parallel is -1; want"},
		"algorithm":    {nil, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "best"}}, `unknown algorithm "best"`},
		"setting":      {nil, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "tpe", Settings: map[string]any{"speed": 1}}}, "speed"},
		"rule":         {nil, fantasia.Options{EarlyStopping: fantasia.EarlyStopping{Name: "soon"}}, `"soon" is unknown`},
		"initial":      {nil, fantasia.Options{Initial: [][]fantasia.Assignment{{{}}}}, "Param.Is"},
	} {
		t.Run(name, func(t *testing.T) {
			space, _ := line()
			if test.space != nil {
				test.space(space)
			}
			_, err := fantasia.Minimize(space, test.options)
			if !errors.Is(err, fantasia.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want an ErrInvalid with %q", err, test.want)
			}
		})
	}
}

// Trials run at once, as many as Parallel says and no more.
func TestParallel(t *testing.T) {
	space, x := line()
	u := minimize(t, space, fantasia.Options{Parallel: 3, Trials: 12, Algorithm: random})
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
	if n := count(u, fantasia.Completed); n != 12 {
		t.Errorf("%d trials, want 12", n)
	}
}

// count returns how many trials are in a state.
func count(u *fantasia.Study, state fantasia.State) (n int) {
	for r := range u.Trials() {
		if r.State == state {
			n++
		}
	}
	return n
}

// The same seed and results give the same points, although they are suggested in the background.
func TestRepeats(t *testing.T) {
	points := func(seed uint64) (list []float64) {
		space, x := line()
		u := minimize(t, space, fantasia.Options{Trials: 12, Seed: seed})
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			return math.Sin(9 * x.Of(trial)), nil
		}); err != nil {
			t.Fatal(err)
		}
		for r := range u.Trials() {
			list = append(list, x.Of(r))
		}
		return list
	}
	first := points(1)
	if again := points(1); !slices.Equal(first, again) {
		t.Errorf("the same seed gives %v and %v", first, again)
	}
	if other := points(2); slices.Equal(first, other) {
		t.Error("another seed gives the same points")
	}
}

// How a trial ends depends on the objective's error.
func TestOutcomes(t *testing.T) {
	space, x := line()
	u := minimize(t, space, fantasia.Options{Trials: 5, Algorithm: random})
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
	for r := range u.Trials() {
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
	if best, ok := u.Best(); !ok || best.Number != 1 {
		t.Errorf("the best trial is %d", best.Number)
	}
}

func TestStudyFails(t *testing.T) {
	space, _ := line()
	u := minimize(t, space, fantasia.Options{Algorithm: random})
	err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (float64, error) { return 0, errors.New("no data") })
	if !errors.Is(err, fantasia.ErrFailed) || !strings.Contains(err.Error(), "no data") {
		t.Errorf("Run: %v, want ErrFailed with the failure", err)
	}
	if _, ok := u.Best(); ok {
		t.Error("there is a best trial")
	}
	if _, err := u.Recommended(t.Context()); !errors.Is(err, fantasia.ErrNothing) {
		t.Errorf("Recommended: %v", err)
	}
}

// A cancelled Run hands its trials back, and the next one evaluates them.
func TestCancelledRun(t *testing.T) {
	space, x := line()
	u := minimize(t, space, fantasia.Options{Trials: 4, Parallel: 2, Algorithm: random})
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
	if n := count(u, fantasia.Completed); n != 4 {
		t.Errorf("%d trials, want 4", n)
	}
}

// When the goal is reached, the contexts of the other trials end.
func TestGoal(t *testing.T) {
	space, _ := line()
	goal := 1.0
	u := minimize(t, space, fantasia.Options{Trials: 100, Parallel: 2, Goal: &goal, Algorithm: random})
	both := make(chan struct{})
	err := u.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
		if trial.Number() == 2 {
			close(both)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), fantasia.ErrEnded) || !trial.ShouldStop() || !errors.Is(trial.Report(1, 0), fantasia.ErrEnded) {
				t.Errorf("the other trial ends with %v", context.Cause(ctx))
			}
			return 0, context.Cause(ctx)
		}
		<-both
		return 0.5, nil
	})
	if err != nil || count(u, fantasia.Completed) != 1 || count(u, fantasia.Cancelled) != 1 {
		t.Errorf("Run: %v", err)
	}
	if _, err := u.Ask(t.Context()); !errors.Is(err, fantasia.ErrEnded) || !strings.Contains(err.Error(), "goal") {
		t.Errorf("Ask after the end: %v", err)
	}
}

// Ask waits for room and for its context, and what it was given at the last moment goes back.
func TestAskWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		space, _ := line()
		u, err := fantasia.Minimize(space, fantasia.Options{Trials: 2, Algorithm: random})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		first, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := u.Ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second trial at once: %v", err)
		}
		next := make(chan *fantasia.Trial)
		go func() {
			trial, err := u.Ask(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- trial
		}()
		synctest.Wait()
		if err := u.Tell(first, 1, nil); err != nil {
			t.Fatal(err)
		}
		second := <-next
		if err := u.Tell(first, 2, nil); !errors.Is(err, fantasia.ErrEnded) {
			t.Errorf("told again: %v", err)
		}
		if err := u.Tell(second, 0, fantasia.ErrStopped); err == nil || errors.Is(err, fantasia.ErrEnded) {
			t.Errorf("stopped although nobody said so: %v", err)
		}
		go func() {
			_, err := u.Ask(t.Context())
			if !errors.Is(err, fantasia.ErrClosed) {
				t.Errorf("Ask of a study that is closed: %v", err)
			}
			next <- nil
		}()
		synctest.Wait()
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		<-next
		if err := u.Tell(second, 2, nil); !errors.Is(err, fantasia.ErrClosed) {
			t.Errorf("Tell after Close: %v", err)
		}
	})
}

// Duration ends a study that is idle, too.
func TestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		space, x := line()
		u, err := fantasia.Minimize(space, fantasia.Options{Duration: time.Hour, Algorithm: random})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		began := time.Now()
		err = u.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
			select {
			case <-time.After(25 * time.Minute):
				return x.Of(trial), nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		if took := time.Since(began); err != nil || took != time.Hour || count(u, fantasia.Completed) != 2 {
			t.Errorf("Run: %v after %v", err, took)
		}
	})
}

func TestStateIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	open := func(hi float64, o fantasia.Options) (*fantasia.Study, error) {
		space := fantasia.NewSpace()
		space.Float("x", 0, hi)
		o.State, o.Algorithm.Name = path, "random"
		return fantasia.Minimize(space, o)
	}
	u, err := open(1, fantasia.Options{Trials: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(1, fantasia.Options{}); !errors.Is(err, fantasia.ErrInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("a state that is in use: %v", err)
	}
	if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) { return float64(trial.Number()), nil }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(u.Close(), u.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := open(1, fantasia.Options{Seed: 5}); !errors.Is(err, fantasia.ErrDifferent) || !strings.Contains(err.Error(), "seed was 0 and is 5") {
		t.Errorf("another seed: %v", err)
	}
	if u, err = open(0.25, fantasia.Options{Trials: 6}); err != nil {
		t.Fatalf("other bounds: %v", err)
	}
	if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		if x := trial.Values()["x"].(float64); x > 0.25 {
			t.Errorf("x is %v, outside of the new bounds", x)
		}
		return 1, nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := count(u, fantasia.Completed); n != 6 {
		t.Errorf("%d trials, want 6", n)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(1, fantasia.Options{}); !errors.Is(err, fantasia.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged state: %v", err)
	}
}

func TestPointsOfTheUser(t *testing.T) {
	space, x := line()
	n := space.Int("n", 1, 9)
	_, foreign := line()
	u := minimize(t, space, fantasia.Options{Trials: 3, Algorithm: random, Initial: [][]fantasia.Assignment{{n.Is(7)}}})
	for _, err := range []error{u.Enqueue(x.Is(2), n.Is(1)), u.Enqueue(x.Is(0)), u.Enqueue(foreign.Is(0), n.Is(1)), u.Add(math.NaN(), x.Is(0), n.Is(1))} {
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
}

// Progress tells of each trial once and in order, one call at a time, and may use the study.
func TestProgress(t *testing.T) {
	space, x := line()
	var u *fantasia.Study
	var busy sync.Mutex
	ended := 0
	u = minimize(t, space, fantasia.Options{Trials: 20, Parallel: 4, Algorithm: random, Progress: func(p fantasia.Progress) {
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
}

func TestSpansAndLog(t *testing.T) {
	space, x := line()
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, []byte("fantasia journal 1\nabc"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	spans := tracetest.NewSpanRecorder()
	u := minimize(t, space, fantasia.Options{
		State: path, Trials: 2, Algorithm: random, Logger: slog.New(slog.NewTextHandler(&log, nil)), Tracer: trace.NewTracerProvider(trace.WithSpanProcessor(spans)),
	})
	if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) { return x.Of(trial), nil }); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.Ended()); n != 2 {
		t.Errorf("%d spans, want 2", n)
	}
	if !strings.Contains(log.String(), "incomplete end of the journal") {
		t.Errorf("the log is %q", log.String())
	}
}

// A fidelity is not searched: few trials get to its highest level.
func TestFidelity(t *testing.T) {
	space, x := line()
	epochs := space.Fidelity("epochs", 1, 9, 3)
	u := minimize(t, space, fantasia.Options{Trials: 26, Algorithm: random})
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
}
