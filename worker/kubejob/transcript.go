package kubejob

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

const (
	// lastLines and lastBytes limit the end of a log that messages show.
	lastLines = 10
	lastBytes = 2 << 10
	// maxNames is the number of metric names that a message shows.
	maxNames = 10
)

// transcript collects the output of an attempt's pods. It is safe for concurrent use:
// each log is followed by its own goroutine.
type transcript struct {
	task    evaluation.Task
	pattern *report.Pattern
	log     *slog.Logger
	// ended is closed when a report ends the attempt.
	ended chan struct{}

	mu         sync.Mutex
	collector  *report.Collector
	end        *evaluation.Ending // from the report that ended it
	checkpoint string
	summary    *jobsidecar.Summary
	lines      int
	last       []string // of the program's own log
	problem    string
	ignored    bool
}

func newTranscript(task evaluation.Task, log *slog.Logger) (*transcript, error) {
	a := task.Assignment
	if task.Measure == nil {
		task.Measure = func(int64, map[string]float64) {}
	}
	t := &transcript{
		task: task, collector: report.NewCollector(a.Objective), ended: make(chan struct{}), checkpoint: a.Checkpoint,
		log: log.With(telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt),
	}
	if m := a.Run.Metrics; m != nil && m.Pattern != "" {
		var err error
		if t.pattern, err = report.NewPattern(m.Pattern); err != nil {
			return nil, err
		}
	}
	return t, nil
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
	reports, err := report.Parse(line)
	t.takeReports(reports, err)
	if t.pattern != nil {
		reports, err := t.pattern.Find(line)
		t.takeReports(reports, err)
	}
}

// reportLine handles a line of the sidecar's log.
func (t *transcript) reportLine(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reports, err := report.Parse(line)
	t.takeReports(reports, err)
}

// takeReports takes reports and errors of unreadable ones. The caller MUST hold the lock.
func (t *transcript) takeReports(reports []report.Report, err error) {
	if err != nil && t.problem == "" {
		t.problem = evaluation.Bounded("an unreadable report: "+err.Error(), 512)
		t.log.Warn("saw "+t.problem, telemetry.LogReason, "further ones are not logged")
	}
	for _, r := range reports {
		if r.Checkpoint != "" {
			t.checkpoint = r.Checkpoint
		}
		if len(r.Metrics) > 0 {
			taken := t.collector.Add(r)
			if len(taken.Ignored) > 0 && !t.ignored {
				t.ignored = true
				t.log.Warn("a value is ignored; further ones are not logged", telemetry.LogReason, taken.Ignored[0])
			}
			if len(taken.Metrics) > 0 {
				t.task.Measure(taken.Step, taken.Metrics)
			}
		}
		t.finish(r.Infeasible, r.Retry, r.Error)
	}
}

// finish records that the program ended the attempt itself; the first one counts. The
// caller MUST hold the lock.
func (t *transcript) finish(infeasible, retry, failed *string) {
	if t.end != nil {
		return
	}
	if t.end = evaluation.Reported(infeasible, retry, failed); t.end != nil {
		close(t.ended)
	}
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
		t.checkpoint = s.Checkpoint
	}
	t.finish(s.Infeasible, s.Retry, s.Error)
}

// summedUp reports whether a sidecar has reported the value.
func (t *transcript) summedUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.summary != nil && t.summary.Value != nil
}

// conclude adds the reports to an ending. A nil ending means that the program ended
// successfully; the value then decides.
func (t *transcript) conclude(e *evaluation.Ending, logs string) evaluation.Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e == nil {
		e = t.value()
	}
	out := *e
	out.Metrics, out.Checkpoint, out.Logs = t.collector.Final(), t.checkpoint, logs
	if t.summary != nil {
		for name, v := range t.summary.Metrics {
			out.Metrics[name] = float64(v)
		}
	}
	if out.Outcome == messaging.OutcomePruned {
		if value, ok := t.reached(); ok && report.Finite(value) {
			out.Values = study.Values{value}
		}
	}
	if f := out.Failure; f != nil {
		f.Message = evaluation.Bounded(f.Message, messaging.MaxMessage)
	}
	return out
}

// reached returns the objective's value so far. The caller MUST hold the lock.
func (t *transcript) reached() (value float64, ok bool) {
	if t.summary != nil && t.summary.Value != nil {
		return float64(*t.summary.Value), true
	}
	return t.collector.Value()
}

// value returns the ending of a program that ended successfully. A sidecar's summary
// takes precedence over logs, which may have lost their beginning.
func (t *transcript) value() *evaluation.Ending {
	if t.end != nil {
		return t.end
	}
	metric := t.task.Assignment.Objective.Metric
	value, ok := t.reached()
	switch {
	case !ok:
		e := evaluation.Failed(messaging.ReasonNoValue, t.withWords(fmt.Sprintf("no %q; saw %s", metric, t.seen())))
		return &e
	case !report.Finite(value):
		e := evaluation.Diverged(metric, value)
		return &e
	default:
		return &evaluation.Ending{Outcome: messaging.OutcomeCompleted, Values: []float64{value}}
	}
}

// seen describes what was seen instead of the objective's metric.
func (t *transcript) seen() string {
	names := t.collector.Names()
	switch {
	case len(names) > 0:
		quoted := make([]string, 0, maxNames)
		for _, name := range names[:min(len(names), maxNames)] {
			quoted = append(quoted, strconv.Quote(name))
		}
		if n := len(names) - maxNames; n > 0 {
			return fmt.Sprintf("%s and %d more", strings.Join(quoted, ", "), n)
		}
		return strings.Join(quoted, ", ")
	case t.problem != "":
		return t.problem
	case t.pattern != nil:
		return "no match of metrics.pattern in " + t.size()
	default:
		return "no report in " + t.size()
	}
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
