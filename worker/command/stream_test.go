package command

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
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
		{"mumble to the end", messaging.OutcomeFailed, messaging.ReasonReported, []string{"the report that ends the trial cannot be read: line 1 of stdout"}},
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
