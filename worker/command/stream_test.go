package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

// streamed returns an assignment of a trial to the program in stream mode.
func streamed(t testing.TB, trial int, do string) *messaging.Assignment {
	a := helper(t, "stream")
	a.Run.Mode = study.ModeStream
	a.Trial = trial
	a.Parameters = study.Point{"x": 3.0, "do": do}
	a.ParameterOrder = []string{"x", "do"}
	return a
}

func TestStreamKeepsItsChild(t *testing.T) {
	e := newEvaluator(t, nil)
	var pid float64
	for trial := 1; trial <= 3; trial++ {
		ending := e.Evaluate(t.Context(), task(streamed(t, trial, "")))
		want(t, ending, messaging.OutcomeCompleted, "")
		if ending.Values.First() != 9 {
			t.Errorf("value %v, want 9: only reports with the trial's number count", ending.Values.First())
		}
		if trial > 1 && ending.Metrics["pid"] != pid {
			t.Error("another child than before")
		}
		pid = ending.Metrics["pid"]
	}
	other := streamed(t, 1, "")
	other.Study = "another-study"
	ending := e.Evaluate(t.Context(), task(other))
	if want(t, ending, messaging.OutcomeCompleted, ""); ending.Metrics["pid"] == pid {
		t.Error("the child of another study was used")
	}
	gone(t, int(pid))
	want(t, e.Evaluate(t.Context(), task(shell(say+`report 1`))), messaging.OutcomeCompleted, "")
	gone(t, int(ending.Metrics["pid"]))
}

func TestStreamEndings(t *testing.T) {
	for _, tt := range []struct {
		do      string
		outcome messaging.Outcome
		reason  string
		parts   []string
	}{
		{"infeasible", messaging.OutcomeInfeasible, messaging.ReasonInfeasible, []string{"too big"}},
		{"error", messaging.OutcomeFailed, messaging.ReasonReported, []string{"bad luck"}},
		{"nothing", messaging.OutcomeFailed, messaging.ReasonNoValue, []string{`no "error"`}},
		{"die", messaging.OutcomeFailed, messaging.ReasonExit, []string{"exit code 3", "boom"}},
		{"leave", messaging.OutcomeFailed, messaging.ReasonReported, []string{"ended before it was done"}},
		{"done and die", messaging.OutcomeCompleted, "", nil},
		{"mumble", messaging.OutcomeFailed, messaging.ReasonNoValue, []string{`"error" is "n/a", not a number: line 2 of stdout`}},
		{"mumble to the end", messaging.OutcomeFailed, messaging.ReasonReported,
			[]string{"the report that ends the trial cannot be read: line 1 of stdout"}},
	} {
		t.Run(tt.do, func(t *testing.T) {
			t.Parallel()
			e := newEvaluator(t, nil)
			ending := e.Evaluate(t.Context(), task(streamed(t, 1, tt.do)))
			want(t, ending, tt.outcome, tt.reason, tt.parts...)
			// A child that died is restarted.
			if pid := ending.Metrics["pid"]; pid != 0 {
				gone(t, int(pid))
			}
			want(t, e.Evaluate(t.Context(), task(streamed(t, 2, ""))), messaging.OutcomeCompleted, "")
		})
	}
}

func TestCancelKillsAStream(t *testing.T) {
	e := newEvaluator(t, nil)
	before := e.Evaluate(t.Context(), task(streamed(t, 1, "")))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, evaluation.ErrTimeout)
	defer cancel()
	want(t, e.Evaluate(ctx, task(streamed(t, 2, "hang"))), messaging.OutcomeTimeout, messaging.ReasonTimeout)
	gone(t, int(before.Metrics["pid"]))
	want(t, e.Evaluate(t.Context(), task(streamed(t, 3, ""))), messaging.OutcomeCompleted, "")
}

// A child that does not read its stdin must not block a worker.
func TestChildThatDoesNotRead(t *testing.T) {
	a := streamed(t, 1, "")
	a.Run.Command, a.Run.Env = []string{"sleep", "60"}, nil
	a.Parameters = study.Point{"x": strings.Repeat("x", 1<<20)}
	a.ParameterOrder = []string{"x"}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, evaluation.ErrCancelled)
	defer cancel()
	want(t, newEvaluator(t, nil).Evaluate(ctx, task(a)), messaging.OutcomeCancelled, messaging.ReasonCancelled)
}

func TestStreamThatCannotBeStarted(t *testing.T) {
	a := streamed(t, 1, "")
	a.Run.Command = []string{"no-such-program"}
	want(t, evaluate(t, a), messaging.OutcomeFailed, messaging.ReasonCommand, "no-such-program")
}

// A trial that writes no files leaves none, however many there are: only what it printed is kept, in the log of
// its program, and where in it.
func TestStreamLeavesNoFilePerTrial(t *testing.T) {
	e := newEvaluator(t, nil)
	kept := func(trials ...int) (paths []string) {
		t.Helper()
		for _, trial := range trials {
			want(t, e.Evaluate(t.Context(), task(streamed(t, trial, ""))), messaging.OutcomeCompleted, "")
		}
		return files(t, e.options.Dir)
	}
	first := kept(1)
	if more := kept(2, 3, 4, 5, 6, 7, 8, 9); !slices.Equal(first, more) {
		t.Errorf("after one trial there are\n%q\nafter nine\n%q", first, more)
	}
	for trial := 1; trial <= 9; trial++ {
		l, err := logfile.Open(e.options.Dir, streamed(t, trial, "").AttemptID, messaging.LogStdout)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.NewSectionReader(l, 0, l.Size()))
		if err = errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		if mine := fmt.Sprintf("working on %d, ", trial); !strings.HasPrefix(string(text), mine) ||
			strings.Count(string(text), "working on") != 1 {
			t.Errorf("the log of trial %d is %q", trial, text)
		}
	}
}

// The directory of checkpoints stays only if the program has written some, or if the next attempt may use it
// already.
func TestEmptyCheckpointDirectories(t *testing.T) {
	const has = `test -d "$FANTASIA_CHECKPOINT_DIR" && `
	e := newEvaluator(t, nil)
	run := func(ctx context.Context, script string) bool {
		t.Helper()
		a := shell(has + script)
		if ending := e.Evaluate(ctx, task(a)); ending.Failure != nil && ending.Failure.ExitCode != nil && *ending.Failure.ExitCode == 1 {
			t.Errorf("%s: the program had no directory", script)
		}
		_, err := os.Stat(e.checkpoints(a))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	for script, stays := range map[string]bool{
		say + `report 1`: false, `exit 3`: false, `exit 75`: false,
		`touch "$FANTASIA_CHECKPOINT_DIR/1"; exit 3`: true,
	} {
		if got := run(t.Context(), script); got != stays {
			t.Errorf("after %s there is a directory of checkpoints: %v, want %v", script, got, stays)
		}
		if err := os.RemoveAll(e.options.Checkpoints); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, evaluation.ErrCancelled)
	defer cancel()
	if !run(cancelled, `sleep 60`) {
		t.Error("the directory was removed by an attempt that was cancelled, so that another may be using it")
	}
}

// files are the paths of all files and folders below one.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

func BenchmarkStreamTrial(b *testing.B) {
	e := newEvaluator(b, nil)
	a := streamed(b, 1, "")
	trial := 0
	for b.Loop() {
		trial++
		next := *a
		next.Trial = trial
		if ending := e.Evaluate(b.Context(), task(&next)); ending.Outcome != messaging.OutcomeCompleted {
			b.Fatal(ending.Failure)
		}
	}
}

func BenchmarkProcessTrial(b *testing.B) {
	e := newEvaluator(b, nil)
	a := shell(say + `report 1`)
	trial := 0
	for b.Loop() {
		trial++
		next := *a
		next.Trial = trial
		if ending := e.Evaluate(b.Context(), task(&next)); ending.Outcome != messaging.OutcomeCompleted {
			b.Fatal(ending.Failure)
		}
	}
	_ = os.Stdout
}
