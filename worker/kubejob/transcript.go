package kubejob

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/streaming"
)

const (
	// lastLines and lastBytes limit the end of a log that messages show.
	lastLines = 10
	lastBytes = 2 << 10
)

// transcript collects the output of an attempt's pods. It is safe for concurrent use:
// each log is followed by its own goroutine.
type transcript struct {
	task    evaluation.Task
	pattern *report.Pattern
	// ended is closed when a report ends the attempt.
	ended chan struct{}

	mu      sync.Mutex
	reports *evaluation.Reports
	end     *evaluation.Ending // from the report that ended it
	over    bool               // ended is closed
	summary *jobsidecar.Summary
	warning string // about an evaluation that completed
	lines   int
	last    []string // of the program's own log
}

func newTranscript(task evaluation.Task, saved bool, log *slog.Logger) (*transcript, error) {
	pattern, err := report.PatternOf(&task.Assignment.Run, task.Assignment.MetricNames())
	return &transcript{task: task, pattern: pattern, reports: evaluation.NewReports(task, saved, log), ended: make(chan struct{})}, err
}

// line handles a line of the program's log, which contains both of its outputs.
func (t *transcript) line(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines++
	t.last = append(t.last, evaluation.Bounded(string(line), lastBytes/2))
	if n := len(t.last) - lastLines; n > lastLines {
		t.last = append(t.last[:0], t.last[n:]...)
	}
	at := report.Line{Text: line, Number: t.lines}
	reports, err := at.Read("the log", report.Parse)
	if t.streams() {
		reports, err = streaming.Own(t.task.Assignment, reports, err)
	}
	t.addReports(reports, err)
	if t.pattern != nil {
		t.addReports(at.Read("the log", t.pattern.Find))
	}
}

// sidecarLine handles a line of the sidecar's log.
func (t *transcript) sidecarLine(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addReports(report.Parse(line))
}

// streams reports whether the program evaluates one trial after another.
func (t *transcript) streams() bool { return t.task.Assignment.Run.Mode == study.ModeStream }

// addReports takes reports and errors of unreadable ones. The caller MUST hold the lock.
func (t *transcript) addReports(reports []report.Report, err error) {
	if t.over && t.streams() {
		return // what follows is not about this trial
	}
	t.reports.AddAll(reports, err, func(r report.Report) { t.finish(r.Infeasible, r.Retry, r.Error, r.Done && t.streams()) })
}

// finish records that the program ended the attempt itself; the first one counts. The
// caller MUST hold the lock.
func (t *transcript) finish(infeasible, retry, failed *string, done bool) {
	if t.over {
		return
	}
	if t.end = evaluation.Reported(infeasible, retry, failed); t.end != nil || done {
		t.over = true
		close(t.ended)
	}
}

// isEnded reports whether a report has ended the attempt.
func (t *transcript) isEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// spoke reports whether any metric was reported.
func (t *transcript) spoke() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reports.Reports > 0
}

func ending(outcome messaging.Outcome, reason, message string) *evaluation.Ending {
	return &evaluation.Ending{Outcome: outcome, Failure: &messaging.Failure{Reason: reason, Message: message}}
}

// summarise takes a sidecar's termination message, which covers every report.
func (t *transcript) summarise(s jobsidecar.Summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.summary == nil || s.Reports > t.summary.Reports {
		t.summary = &s
	}
	if s.Checkpoint != "" {
		t.reports.Checkpoint = s.Checkpoint
	}
	if s.Warning != "" {
		t.reports.Warn(s.Warning)
	}
	t.finish(s.Infeasible, s.Retry, s.Error, false)
}

// summedUp reports whether a sidecar has reported the values.
func (t *transcript) summedUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.summary != nil && t.summary.Reached() != nil
}

// warn adds a warning about the program's memory to an ending that is completed.
func (t *transcript) warn(warning string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warning = warning
}

// conclude adds the reports to an ending. A nil ending means that the program ended
// successfully; the value then decides.
func (t *transcript) conclude(e *evaluation.Ending) evaluation.Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e == nil {
		e = t.value()
	}
	out := *e
	if t.warning != "" && out.Outcome == messaging.OutcomeCompleted && out.Failure == nil {
		out.Failure = &messaging.Failure{Reason: messaging.ReasonMemory, Message: "warning: " + t.warning}
	}
	t.reports.Conclude(&out)
	if t.summary != nil {
		for name, v := range t.summary.Metrics {
			out.Metrics[name] = float64(v)
		}
	}
	if out.Outcome == messaging.OutcomePruned {
		out.Values = t.reached()
	}
	return out
}

// reached returns the objectives' values so far; nil if one is unknown or not finite. The caller
// MUST hold the lock.
func (t *transcript) reached() study.Values {
	if t.summary != nil && t.summary.Reached() != nil && !t.reports.Continues {
		if values := t.summary.Reached(); evaluation.AllFinite(values) {
			return values
		}
		return nil
	}
	return t.reports.ValuesSoFar()
}

// value returns the ending of a program that ended successfully. A sidecar's summary
// takes precedence over logs, which may have lost their beginning, unless earlier attempts count too:
// it knows nothing of them.
func (t *transcript) value() *evaluation.Ending {
	if t.end != nil {
		return t.end
	}
	if s := t.summary; s != nil && s.Reached() != nil && !t.reports.Continues {
		return new(evaluation.Valued(t.task.Assignment.Objectives(), s.Reached()))
	}
	if e := t.reports.Ending(); e != nil {
		return e
	}
	return new(evaluation.Failed(messaging.ReasonNoValue, t.withWords(fmt.Sprintf("no %q; saw %s", t.reports.Missing(), t.seen()))))
}

// seen describes what was seen instead of an objective's metric.
func (t *transcript) seen() string {
	switch reported := t.reports.Seen(); {
	case reported != "":
		return reported
	case t.pattern != nil:
		return "no match of metrics.pattern in " + t.size() + t.advice()
	default:
		return "no report in " + t.size() + t.advice()
	}
}

// advice says how the metrics in the last lines could be read, if they are there.
func (t *transcript) advice() string {
	return report.Advice(t.tail(), study.MetricNames(t.task.Assignment.Objectives())...)
}

// size describes how much the program has written.
func (t *transcript) size() string {
	if t.lines == 1 {
		return "one line of output"
	}
	return fmt.Sprintf("%d lines of output", t.lines)
}

// words adds the program's last output to a message.
func (t *transcript) words(message string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.withWords(message)
}

// lastLines returns the program's last lines.
func (t *transcript) lastLines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail()
}

// tail returns the program's last lines. The caller MUST hold the lock.
func (t *transcript) tail() string {
	return strings.TrimSpace(strings.Join(t.last[max(0, len(t.last)-lastLines):], "\n"))
}

func (t *transcript) withWords(message string) string {
	text := t.tail()
	if text == "" {
		return message
	}
	if n := len(text) - lastBytes; n > 0 {
		text = strings.ToValidUTF8(text[n:], "")
	}
	return evaluation.Bounded(message, messaging.MaxMessage-lastBytes-64) + "\nIts last output:\n" + text
}

// own returns the ending that the program itself reported, or nil.
func (t *transcript) own() *evaluation.Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}
