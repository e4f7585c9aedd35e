package kubejob

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
)

func newTestTranscript(t testing.TB, pattern string, measure func(int64, map[string]float64)) *transcript {
	t.Helper()
	a := &messaging.Assignment{Objective: study.Objective{Metric: "error", Direction: study.Minimize}, Checkpoint: "before"}
	if pattern != "" {
		a.Run.Metrics = &study.Metrics{Pattern: pattern}
	}
	tr, err := newTranscript(evaluation.Task{Assignment: a, Measure: measure}, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestTranscript(t *testing.T) {
	report := func(s string) string { return `{"fantasia": {` + s + `}}` }
	for _, tt := range []struct {
		name, pattern string
		log, sidecar  []string
		summary       string
		outcome       messaging.Outcome
		value         float64
		message       string
		checkpoint    string
	}{
		{name: "reports in the log",
			log:     []string{"epoch 1 " + report(`"step": 1, "metrics": {"error": 2}`), report(`"step": 2, "metrics": {"error": 1}`)},
			outcome: messaging.OutcomeCompleted, value: 1, checkpoint: "before"},
		{name: "a pattern", pattern: `err=(?P<error>\S+)`, log: []string{"err=0.5", "err=0.25,"}, outcome: messaging.OutcomeCompleted,
			value: 0.25, checkpoint: "before"},
		{name: "the sidecar", sidecar: []string{report(`"step": 1, "metrics": {"error": 3}, "checkpoint": "c1"`)},
			outcome: messaging.OutcomeCompleted, value: 3, checkpoint: "c1"},
		{name: "the sidecar's summary beats a log that lost its beginning", sidecar: []string{report(`"step": 9, "metrics": {"error": 3}`)},
			summary: `{"value": 2, "metrics": {"error": 2}, "checkpoint": "c2", "reports": 9}`, outcome: messaging.OutcomeCompleted, value: 2,
			checkpoint: "c2"},
		{name: "a summary alone", summary: `{"value": "NaN", "reports": 1}`, outcome: messaging.OutcomeInfeasible, message: "diverged",
			checkpoint: "before"},
		{name: "infeasible in a summary", summary: `{"infeasible": "too large", "reports": 0}`, outcome: messaging.OutcomeInfeasible,
			message: "too large", checkpoint: "before"},
		{name: "nothing", log: []string{"hello", "world"}, outcome: messaging.OutcomeFailed,
			message: "saw no report in 2 lines of output\nIts last output:\nhello\nworld", checkpoint: "before"},
		{name: "a value for people", log: []string{"error: 0.25"}, outcome: messaging.OutcomeFailed,
			message: `"error: 0.25" can be read with spec.trial.metrics: {pattern: `, checkpoint: "before"},
		{name: "another metric", log: []string{report(`"metrics": {"loss": 2}`)}, outcome: messaging.OutcomeFailed,
			message: `no "error"; saw "loss"`, checkpoint: "before"},
		{name: "no match", pattern: `err=(?P<error>\S+)`, log: []string{"x"}, outcome: messaging.OutcomeFailed,
			message: "no match of metrics.pattern", checkpoint: "before"},
		{name: "not a number", log: []string{report(`"metrics": {"error": NaN}`)}, outcome: messaging.OutcomeInfeasible, message: "NaN",
			checkpoint: "before"},
		{name: "a value that cannot be read", pattern: `err=(?P<error>\S+)`, log: []string{"err=0.5", "err=None"},
			outcome: messaging.OutcomeFailed,
			message: `"error" is "None", not a number: line 2 of the log is "err=None"`, checkpoint: "before"},
		{name: "a line that is too long", log: []string{strings.Repeat("x", maxLine)}, outcome: messaging.OutcomeFailed,
			message: "longer than 1048576 bytes", checkpoint: "before"},
		{name: "a retry", log: []string{report(`"retry": "spot", "checkpoint": "c"`)}, outcome: messaging.OutcomeHandedBack, message: "spot",
			checkpoint: "c"},
		{name: "an error", log: []string{report(`"error": "no data"`), report(`"infeasible": true`)}, outcome: messaging.OutcomeFailed,
			message: "no data", checkpoint: "before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTestTranscript(t, tt.pattern, nil)
			for _, line := range tt.log {
				tr.line([]byte(line))
			}
			for _, line := range tt.sidecar {
				tr.sidecarLine([]byte(line))
			}
			if s, ok := jobsidecar.Parse(tt.summary); ok {
				tr.summarise(s)
			}
			e := tr.conclude(nil)
			if e.Outcome != tt.outcome || e.Checkpoint != tt.checkpoint {
				t.Errorf("it ends as %+v (%+v), want %s with checkpoint %q", e, e.Failure, tt.outcome, tt.checkpoint)
			}
			if len(e.Values) > 0 && e.Values.First() != tt.value || (len(e.Values) > 0) != (tt.outcome == messaging.OutcomeCompleted) {
				t.Errorf("the value is %v, want %v", e.Values, tt.value)
			}
			if e.Failure != nil && !strings.Contains(e.Failure.Message, tt.message) {
				t.Errorf("the message is %q, want …%s…", e.Failure.Message, tt.message)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	tr := newTestTranscript(t, "", nil)
	for range 100 {
		tr.line(bytes.Repeat([]byte("ä"), 100_000))
	}
	e := tr.conclude(new(evaluation.Failed(messaging.ReasonExit, tr.words(strings.Repeat("x", 10_000)))))
	if n := len(e.Failure.Message); n > messaging.MaxMessage {
		t.Errorf("the message has %d bytes, at most %d are accepted", n, messaging.MaxMessage)
	}
}

// stamped is a line as the cluster's API gives it.
func stamped(second int, text string) string {
	return fmt.Sprintf("2026-11-21T15:00:%02d.5Z %s\n", second, text)
}

// TestLogsAreReadOnce reads a log whose connection breaks at every place and is
// opened again from the last second: each line comes once, in order.
func TestLogsAreReadOnce(t *testing.T) {
	var all strings.Builder
	var want []string
	for i := range 12 {
		line := fmt.Sprintf("line %d", i)
		want = append(want, line)
		all.WriteString(stamped(i/3, line)) // three lines a stamp
	}
	text := all.String()
	for cutAt := range strings.SplitAfter(text, "\n") {
		parts := strings.SplitAfter(text, "\n")
		var got []string
		l := &log{emit: func(line []byte) { got = append(got, string(line)) }}
		if err := l.lines(strings.NewReader(strings.Join(parts[:cutAt], "")), true); err != nil {
			t.Fatal(err)
		}
		// From the second of the last stamp on.
		if err := l.lines(strings.NewReader(strings.Join(parts[max(0, cutAt-1)/3*3:], "")), true); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("broken after %d lines, the lines differ (-want +got):\n%s", cutAt, diff)
		}
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &log{emit: func(line []byte) { got = append(got, string(line)) }}
	text := stamped(1, "10%\r20%\rdone") + "no stamp\n" + stamped(2, strings.Repeat("x", 2*maxLine)) + stamped(3, "") +
		stamped(4, "last, without its end")
	if err := l.lines(strings.NewReader(strings.TrimSuffix(text, "\n")), true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10%", "20%", "done", "no stamp", strings.Repeat("x", maxLine-len(stamped(2, ""))+1),
		"last, without its end"}, got); diff != "" {
		t.Errorf("the lines differ (-want +got):\n%s", diff)
	}
}

// FuzzLog holds that reading a log again from its beginning tells nothing anew.
func FuzzLog(f *testing.F) {
	f.Add(stamped(1, `{"fantasia": {"step": 1, "metrics": {"error": 1e999}}}`) + stamped(1, "x"))
	f.Add("2026-11-21T15:00:00Z \n\r\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		tr := newTestTranscript(t, "", nil)
		var lines []string
		l := &log{emit: func(line []byte) { lines = append(lines, string(line)); tr.line(line) }}
		if err := l.lines(strings.NewReader(text), true); err != nil {
			t.Fatal(err)
		}
		tr.conclude(nil)
		if n := len(lines); l.last != "" && sorted(text) {
			if err := l.lines(strings.NewReader(text), true); err != nil {
				t.Fatal(err)
			}
			if len(lines) != n {
				t.Errorf("%d lines came again: %q", len(lines)-n, lines[n:])
			}
		}
	})
}

// sorted reports whether each line has a stamp, and none before its predecessor's.
func sorted(text string) bool {
	var stamps []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		stamp, _ := splitStamp([]byte(line))
		if stamp == "" || !strings.HasSuffix(stamp, "Z") || len(stamp) != stampSize {
			return false
		}
		stamps = append(stamps, stamp)
	}
	return slices.IsSorted(stamps)
}
