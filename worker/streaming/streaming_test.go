package streaming

import (
	"errors"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

func assigned() *messaging.Assignment {
	return &messaging.Assignment{
		AttemptID: messaging.AttemptID{Study: "id", Trial: 4, Attempt: 2}, StudyName: "digits", Seed: 7, Configuration: 3,
		Parameters: study.Point{"x": 0.5, "n": int64(3)}, ParameterOrder: []string{"x", "n"},
	}
}

// docs/tune/attach.md describes these lines for people.
func TestLines(t *testing.T) {
	task := evaluation.Task{Assignment: assigned(), Trace: messaging.TraceContext{Traceparent: "00-1-2-01"}}
	line, err := Line(task, "")
	want := `{"fantasia":{"study":"digits","trial":4,"attempt":2,"seed":7,"parameters":{"x":0.5,"n":3},"checkpointKey":"` +
		task.Assignment.CheckpointKey() + `","traceparent":"00-1-2-01"}}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("got %s, %v, want %s", line, err, want)
	}
	if line, err = Line(task, "/checkpoints"); err != nil || !strings.Contains(string(line), `"checkpointDir":"/checkpoints"`) {
		t.Errorf("got %s, %v, want its folder", line, err)
	}
	for cause, reason := range map[error]string{evaluation.ErrPruned: "pruned", evaluation.ErrCancelled: "cancelled",
		evaluation.ErrTimeout: "", evaluation.ErrLeaving: ""} {
		want := ""
		if reason != "" {
			want = `{"fantasia":{"stop":true,"trial":4,"attempt":2,"reason":"` + reason + `"}}` + "\n"
		}
		if line, err := StopLine(task.Assignment, cause); err != nil || string(line) != want {
			t.Errorf("%v: got %s, %v, want %s", cause, line, err, want)
		}
	}
}

func TestOwn(t *testing.T) {
	for _, tt := range []struct {
		line    string
		own     int
		problem string
		ends    bool // by an error
	}{
		{`{"fantasia": {"trial": 4, "metrics": {"loss": 1}}}`, 1, "", false},
		{`{"fantasia": {"trial": 4, "attempt": 2, "done": true}}`, 1, "", false},
		{`{"fantasia": {"trial": 4, "attempt": 1, "done": true}}`, 0, "", false},
		{`{"fantasia": {"trial": 3, "done": true}}`, 0, "", false},
		{`{"fantasia": {"stoppable": true}}`, 0, "", false},
		{`{"fantasia": {"metrics": {"loss": 1}}}`, 0, `it lacks "trial"`, false},
		{`{"fantasia": {"trial": 4, "done": true, }}`, 1, "", true},
	} {
		reports, err := report.Line{Text: []byte(tt.line), Number: 1}.Read("stdout", report.Parse)
		own, err := Own(assigned(), reports, err)
		if len(own) != tt.own || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) ||
			tt.problem == "" && !tt.ends && err != nil {
			t.Errorf("%s: %d reports, %v; want %d and %q", tt.line, len(own), err, tt.own, tt.problem)
		}
		if len(own) == 1 && (own[0].Error != nil) != tt.ends {
			t.Errorf("%s: ends the trial: %v, want %v", tt.line, own[0].Error != nil, tt.ends)
		}
		if Stoppable(reports) != strings.Contains(tt.line, "stoppable") {
			t.Errorf("%s: stoppable is %v", tt.line, Stoppable(reports))
		}
	}
	if _, err := Own(assigned(), nil, errors.New("unreadable")); err == nil {
		t.Error("the error of reading a line is lost")
	}
}
