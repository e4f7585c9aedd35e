// Package streaming is what a worker and a program of mode stream, which evaluates one trial
// after another, tell each other. The program reads lines from its standard input and prints
// reports that name their trial.
package streaming

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// assignment is the line that a program receives for a trial.
type assignment struct {
	Study         string          `json:"study"`
	Trial         int             `json:"trial"`
	Attempt       int             `json:"attempt"`
	Seed          uint64          `json:"seed"`
	Parameters    json.RawMessage `json:"parameters"`
	Checkpoint    string          `json:"checkpoint,omitempty"`
	CheckpointDir string          `json:"checkpointDir,omitempty"`
	CheckpointKey string          `json:"checkpointKey"`
	Traceparent   string          `json:"traceparent,omitempty"`
	Tracestate    string          `json:"tracestate,omitempty"`
}

// Line returns the line for an attempt, with its newline. checkpoints is the trial's folder on the
// program's disk; empty if the worker does not know that disk.
func Line(task evaluation.Task, checkpoints string) ([]byte, error) {
	a := task.Assignment
	parameters, err := study.Object(a.ParameterOrder, a.Parameters)
	if err != nil {
		return nil, err
	}
	return encode(assignment{
		Study: a.StudyName, Trial: a.Trial, Attempt: a.Attempt, Seed: a.Seed, Parameters: parameters,
		Checkpoint: a.Checkpoint, CheckpointDir: checkpoints, CheckpointKey: a.CheckpointKey(),
		Traceparent: task.Trace.Traceparent, Tracestate: task.Trace.Tracestate,
	})
}

// stop is the line that a program receives for a trial that it should end.
type stop struct {
	Stop    bool   `json:"stop"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
}

// StopLine returns the line that asks a program to end an attempt, with its newline. It is nil if
// the program must be ended instead: a worker that leaves no longer needs it, and a program whose
// trial runs too long may hang. cause is what evaluation.Stopped returns.
func StopLine(a *messaging.Assignment, cause error) ([]byte, error) {
	var reason string
	switch {
	case errors.Is(cause, evaluation.ErrPruned):
		reason = "pruned"
	case errors.Is(cause, evaluation.ErrCancelled):
		reason = "cancelled"
	default:
		return nil, nil
	}
	return encode(stop{Stop: true, Trial: a.Trial, Attempt: a.Attempt, Reason: reason})
}

func encode(content any) ([]byte, error) {
	line, err := json.Marshal(map[string]any{"fantasia": content})
	if err != nil {
		return nil, fmt.Errorf("write a line for the program: %w", err)
	}
	return append(line, '\n'), nil
}

// Stoppable reports whether one of the reports says that the program reads stop lines.
func Stoppable(reports []report.Report) bool {
	return slices.ContainsFunc(reports, func(r report.Report) bool { return r.Stoppable })
}

// Own returns the reports of a line that belong to an attempt: those that name it, and those that
// cannot be read, which may belong to any. One of these ends the attempt if nothing else would.
// err is the error of reading the line, to which it adds that a report names no trial.
func Own(a *messaging.Assignment, reports []report.Report, err error) ([]report.Report, error) {
	var own []report.Report
	for _, r := range reports {
		switch {
		case reflect.DeepEqual(r, report.Report{Stoppable: true}): // it belongs to no trial
		case r.Unreadable[""] != "":
			if strings.Contains(r.Unreadable[""], `"done"`) {
				r.Error = new("the report that ends the trial cannot be read: " + r.Origin)
			}
			own = append(own, r)
		case r.Trial == nil:
			err = errors.Join(err, errors.New(`it lacks "trial", which stream mode requires`))
		case *r.Trial == a.Trial && (r.Attempt == nil || *r.Attempt == a.Attempt):
			own = append(own, r)
		}
	}
	return own, err
}
