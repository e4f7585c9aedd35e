package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// learner is a program in stream mode that reports 0.5 for each trial, and reads on. The
// variable SAYS is the line with which it begins, TAG what it adds to its reports. The
// parameter "do" chooses what it does when it is told to stop: end the trial with the
// value 0.25, exit, or nothing. With "finish" it does not wait for that.
func learner() {
	if says := os.Getenv("SAYS"); says != "" {
		fmt.Println(says)
	}
	say := func(trial int, value float64, more string) {
		fmt.Printf("{\"fantasia\": {\"trial\": %d%s, \"metrics\": {\"error\": %g, \"pid\": %d}%s}}\n", trial, os.Getenv("TAG"), value,
			os.Getpid(), more)
	}
	const done = `, "done": true`
	var trial int
	var do string
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var line struct {
			Fantasia struct {
				Stop           bool
				Reason         string
				Trial, Attempt int
				Parameters     struct{ Do string }
			}
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			fmt.Fprintln(os.Stderr, "bad line:", err)
			os.Exit(3)
		}
		f := line.Fantasia
		switch {
		case !f.Stop:
			trial, do = f.Trial, f.Parameters.Do
			if do == "finish" {
				say(trial, 0.5, done)
			} else {
				say(trial, 0.5, "")
			}
		case f.Trial != trial || f.Attempt != 1 || f.Reason != os.Getenv("REASON"):
			fmt.Fprintf(os.Stderr, "bad stop: %s\n", in.Bytes())
			os.Exit(3)
		case do == "exit":
			os.Exit(0)
		case do == "end":
			say(trial, 0.25, done)
		}
	}
}

// learning returns an assignment of a trial to learner.
func learning(t testing.TB, trial int, do string, env ...string) *messaging.Assignment {
	a := helper(t, "learner", env...)
	a.Run.Mode, a.Trial = study.ModeStream, trial
	a.Parameters, a.ParameterOrder = study.Point{"do": do}, []string{"do"}
	return a
}

const (
	hello  = `SAYS={"fantasia": {"stoppable": true}}`
	tagged = `TAG=, "step": 1, "stoppable": true`
	pruned = "REASON=pruned"
)

// TestAChildIsAskedToStop stops a trial and checks whether its child runs the next one.
func TestAChildIsAskedToStop(t *testing.T) {
	for _, tt := range []struct {
		name    string
		do      string
		env     []string
		cause   error
		outcome messaging.Outcome
		reason  string
		value   float64 // the last one
		kept    bool
	}{
		{"pruned, after a first line", "end", []string{hello, pruned}, evaluation.ErrPruned, messaging.OutcomePruned, "", 0.25, true},
		{"pruned, after a report", "end", []string{`TAG=, "stoppable": true`, pruned}, evaluation.ErrPruned, messaging.OutcomePruned, "", 0.25,
			true},
		{"pruned, ends without another step", "end", []string{tagged, pruned}, evaluation.ErrPruned, messaging.OutcomePruned, "", 0.5, true},
		{"cancelled", "end", []string{hello, "REASON=cancelled"}, evaluation.ErrCancelled, messaging.OutcomeCancelled, messaging.ReasonCancelled,
			0.25, true},
		{"pruned, never asked for it", "end", nil, evaluation.ErrPruned, messaging.OutcomePruned, "", 0.5, false},
		{"pruned, says that it cannot", "end", []string{`SAYS={"fantasia": {"stoppable": false}}`}, evaluation.ErrPruned, messaging.OutcomePruned,
			"", 0.5, false},
		{"pruned, exits", "exit", []string{hello, pruned}, evaluation.ErrPruned, messaging.OutcomePruned, "", 0.5, false},
		{"pruned, does nothing", "ignore", []string{hello, pruned}, evaluation.ErrPruned, messaging.OutcomePruned, "", 0.5, false},
		{"too slow", "end", []string{hello}, evaluation.ErrTimeout, messaging.OutcomeTimeout, messaging.ReasonTimeout, 0.5, false},
		{"leaving", "end", []string{hello}, evaluation.ErrLeaving, messaging.OutcomeHandedBack, messaging.ReasonLeaving, 0.5, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, a := newEvaluator(t, nil), learning(t, 1, tt.do, tt.env...)
			if tt.do == "ignore" {
				a.Run.Grace = study.Duration(100 * time.Millisecond)
			}
			ending, first := stopAfterFirst(t, e, a, tt.cause, false)
			want(t, ending, tt.outcome, tt.reason)
			if ending.Metrics["error"] != tt.value {
				t.Errorf("the last value is %v, want %v", ending.Metrics["error"], tt.value)
			}
			if tt.outcome == messaging.OutcomePruned && (len(ending.Values) != 1 || ending.Values[0] != tt.value) {
				t.Errorf("it has reached %v, want %v", ending.Values, tt.value)
			}
			if !tt.kept {
				gone(t, int(first["pid"]))
			}
			next := learning(t, 2, "finish", tt.env...)
			next.Run.Grace = a.Run.Grace
			ending = e.Evaluate(t.Context(), task(next))
			want(t, ending, messaging.OutcomeCompleted, "")
			if kept := ending.Metrics["pid"] == first["pid"]; kept != tt.kept {
				t.Errorf("the next trial has the same process: %v, want %v", kept, tt.kept)
			}
		})
	}
}

// A worker that must end does not wait for a child that was asked to stop.
func TestKillEndsTheWaitForAnAnswer(t *testing.T) {
	a := learning(t, 1, "ignore", hello, pruned)
	a.Run.Grace = study.Duration(time.Hour)
	ending, first := stopAfterFirst(t, newEvaluator(t, nil), a, evaluation.ErrPruned, true)
	want(t, ending, messaging.OutcomePruned, "")
	gone(t, int(first["pid"]))
}
