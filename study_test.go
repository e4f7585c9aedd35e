package fantasia_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/optimizer"
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
		"no parameter": {func(s *fantasia.Space) { s.Require("text", func(fantasia.Point) bool { return true }) }, fantasia.Options{},
			"names no parameter"},
		"name":       {nil, fantasia.Options{Name: "A b"}, "Options.Name is A b; want"},
		"parallel":   {nil, fantasia.Options{Parallel: -1}, "Options.Parallel is -1; want"},
		"algorithm":  {nil, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "best"}}, `unknown algorithm "best"`},
		"of a paper": {nil, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "lgp"}}, "set Options.Algorithms to papers.Algorithms()"},
		"setting":    {nil, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "tpe", Settings: map[string]any{"speed": 1}}}, "speed"},
		"rule":       {nil, fantasia.Options{EarlyStopping: fantasia.EarlyStopping{Name: "soon"}}, `"soon" is unknown`},
		"initial":    {nil, fantasia.Options{Initial: [][]fantasia.Assignment{{{}}}}, "Param.Is"},
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

// count returns how many trials are in a state.
func count(t testing.TB, u *fantasia.Study, state fantasia.State) (n int) {
	t.Helper()
	for r, err := range u.Trials() {
		if err != nil {
			t.Fatal(err)
		}
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
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
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
		if took := time.Since(began); err != nil || took != time.Hour || count(t, u, fantasia.Completed) != 2 {
			t.Errorf("Run: %v after %v", err, took)
		}
	})
}

// With Duration alone, no trial is begun that is not expected to end in time: four trials of 25 minutes end in two hours, and
// a fifth would not. With Trials, it is begun.
func TestDurationAlone(t *testing.T) {
	for _, c := range []struct {
		trials int
		want   time.Duration
	}{{0, 100 * time.Minute}, {10, 2 * time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			space, x := line()
			u, err := fantasia.Minimize(space, fantasia.Options{Duration: 2 * time.Hour, Trials: c.trials, Algorithm: random})
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
			if took := time.Since(began); err != nil || took != c.want || count(t, u, fantasia.Completed) != 4 {
				t.Errorf("Trials %d: %v after %v, with %d completed", c.trials, err, took, count(t, u, fantasia.Completed))
			}
		})
	}
}

// No trial is begun once the budget is spent, and evaluations that fail count with what they have spent.
func TestMaxCost(t *testing.T) {
	space, x := line()
	u, err := fantasia.Minimize(space, fantasia.Options{MaxCost: 10, Algorithm: random})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	err = u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		if err := trial.Spend(1); err != nil {
			return 0, err
		}
		if trial.Number() == 2 {
			return 0, errors.New("simulated")
		}
		return x.Of(trial), trial.Spend(4)
	})
	if completed := count(t, u, fantasia.Completed); err != nil || completed != 3 || count(t, u, fantasia.Failed) != 1 {
		t.Errorf("%v with %d completed; want 3 of 4 dollars after one that failed with 1", err, completed)
	}
	for trial, err := range u.Trials() {
		if want := map[int]float64{1: 4, 2: 1, 3: 4, 4: 4}[trial.Number]; err != nil || trial.Cost != want {
			t.Errorf("trial %d has cost %v (%v), want %v", trial.Number, trial.Cost, err, want)
		}
	}
	for name, o := range map[string]fantasia.Options{
		"MaxCost is -1": {MaxCost: -1}, "MaxCost is +Inf": {MaxCost: math.Inf(1)}, `"value" is the study's only objective`: {Cost: "value"},
	} {
		if _, err := fantasia.Minimize(space, o); !errors.Is(err, fantasia.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: the error is %v", o, err)
		}
	}
}

// A study ends once 30 more trials are not expected to gain more than StopGain, which here is more than there is.
func TestStopGain(t *testing.T) {
	space, x := line()
	u, err := fantasia.Minimize(space, fantasia.Options{Trials: 60, StopGain: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	err = u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		return math.Sin(9 * x.Of(trial)), nil
	})
	const enough = optimizer.GainCompleted
	if completed := count(t, u, fantasia.Completed); err != nil || completed < enough || completed > enough+2 {
		t.Errorf("%v with %d completed; want to stop after %d", err, completed, enough)
	}
	_, err = u.Ask(t.Context())
	if !errors.Is(err, fantasia.ErrEnded) || !strings.Contains(err.Error(), "30 more trials are expected to gain") {
		t.Errorf("the ended study says %v", err)
	}
	hourly, err := fantasia.Minimize(space, fantasia.Options{Trials: 60, StopGain: 1e9, StopGainPer: "hour"})
	if err != nil {
		t.Fatal(err)
	}
	defer hourly.Close()
	err = hourly.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		time.Sleep(time.Millisecond)
		return math.Sin(9 * x.Of(trial)), nil
	})
	if completed := count(t, hourly, fantasia.Completed); err != nil || completed > enough+2 {
		t.Errorf("%v with %d completed; want to stop after %d", err, completed, enough)
	}
	if _, err := hourly.Ask(t.Context()); !errors.Is(err, fantasia.ErrEnded) || !strings.Contains(err.Error(), "an hour, which is not more") {
		t.Errorf("the ended study says %v", err)
	}
	for name, o := range map[string]fantasia.Options{
		"StopGain is -1": {StopGain: -1}, "StopGain is NaN": {StopGain: math.NaN()},
		`stopWhen.per: "day" is not accepted; want trials, hour or cost`: {StopGain: 1, StopGainPer: "day"},
		"stopWhen.gain: 0 is not accepted":                               {StopGainPer: "hour"},
		"cost needs a study whose trials have one":                       {StopGain: 1, StopGainPer: "cost"},
		"random cannot tell what more trials would gain":                 {StopGain: 1, Algorithm: random},
	} {
		if _, err := fantasia.Minimize(space, o); !errors.Is(err, fantasia.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: the error is %v", o, err)
		}
	}
}

// Spend is for studies with a cost, and takes only what can be one.
func TestSpendRefuses(t *testing.T) {
	for _, c := range []struct {
		cost string
		sum  float64
	}{{"", 1}, {"dollars", -1}, {"dollars", math.NaN()}, {"dollars", math.Inf(1)}} {
		space, _ := line()
		u, err := fantasia.Minimize(space, fantasia.Options{Cost: c.cost, Algorithm: random})
		if err != nil {
			t.Fatal(err)
		}
		trial, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := trial.Spend(c.sum); !errors.Is(err, fantasia.ErrInvalid) {
			t.Errorf("with the cost %q, Spend(%v) returns %v; want ErrInvalid", c.cost, c.sum, err)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
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
	if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		return float64(trial.Number()), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(u.Close(), u.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := open(1, fantasia.Options{Seed: 5}); !errors.Is(err, fantasia.ErrDifferent) ||
		!strings.Contains(err.Error(), "seed was 0 and is 5") {
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
	if n := count(t, u, fantasia.Completed); n != 6 {
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

func TestSpansAndLog(t *testing.T) {
	space, x := line()
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, []byte("fantasia journal 1\nabc"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	spans := tracetest.NewSpanRecorder()
	u := minimize(t, space, fantasia.Options{
		State: path, Trials: 2, Algorithm: random, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Tracer: trace.NewTracerProvider(trace.WithSpanProcessor(spans)),
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

// The error of a study that has failed wraps what the objective returned, with one value or several.
func TestFailureWrapsTheObjectives(t *testing.T) {
	mine := errors.New("out of memory")
	check := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, fantasia.ErrFailed) || !errors.Is(err, mine) {
			t.Errorf("the error is %v; want one that wraps ErrFailed and the objective's", err)
		}
		if n := strings.Count(err.Error(), mine.Error()); n != 1 {
			t.Errorf("the objective's text is there %d times in %q", n, err)
		}
	}
	t.Run("one value", func(t *testing.T) {
		space := fantasia.NewSpace()
		space.Float("x", 0, 1)
		u, err := fantasia.Minimize(space, fantasia.Options{Trials: 5, Algorithm: random})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		n := 0
		check(t, u.Run(t.Context(), func(context.Context, *fantasia.Trial) (float64, error) {
			if n++; n == 2 {
				return 0, errors.New("another one")
			}
			return 0, fmt.Errorf("evaluate: %w", mine)
		}))
	})
	t.Run("several", func(t *testing.T) {
		space := fantasia.NewSpace()
		space.Float("x", 0, 1)
		type found struct{ a, b float64 }
		u, err := fantasia.Optimize(space, fantasia.Options{Trials: 5, Algorithm: random},
			fantasia.Lowest("a", func(f found) float64 { return f.a }), fantasia.Lowest("b", func(f found) float64 { return f.b }))
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		check(t, u.Run(t.Context(), func(context.Context, *fantasia.Trial) (found, error) { return found{}, mine }))
	})
}
