package evaluation

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// maxNames is the number of metric names that a message shows.
const maxNames = 10

// Reports are what an attempt's program has reported. They are not safe for concurrent use.
type Reports struct {
	*report.Collector
	// Checkpoint is the last reference that was reported.
	Checkpoint string

	// Log names the attempt.
	Log *slog.Logger

	task    Task
	problem string // the first problem with a report
	ignored bool   // a warning about ignored values was logged
}

// NewReports returns the reports of an attempt that begins.
func NewReports(task Task, log *slog.Logger) *Reports {
	a := task.Assignment
	return &Reports{
		Collector: report.NewCollector(a.Objectives(), a.LimitMetrics()...), Checkpoint: a.Checkpoint, task: task,
		Log: log.With(telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt),
	}
}

// Add takes a report and passes its metrics on. It returns what was ignored, and why.
func (r *Reports) Add(one report.Report) (ignored []string) {
	if one.Checkpoint != "" {
		r.Checkpoint = one.Checkpoint
	}
	if len(one.Metrics)+len(one.Unreadable) == 0 {
		return nil
	}
	taken := r.Collector.Add(one)
	if len(taken.Metrics) > 0 && r.task.Measure != nil {
		r.task.Measure(taken.Step, taken.Metrics)
	}
	return taken.Ignored
}

// AddAll takes reports and the error of those that cannot be read, and calls each for every
// report.
func (r *Reports) AddAll(reports []report.Report, err error, each func(report.Report)) {
	if err != nil {
		r.Complain("an unreadable report: " + err.Error())
	}
	for _, one := range reports {
		if ignored := r.Add(one); len(ignored) > 0 && !r.ignored {
			r.ignored = true
			r.Log.Warn("a value is ignored; further ones are not logged", telemetry.LogReason, ignored[0])
		}
		each(one)
	}
}

// Complain keeps the first problem for the message of a failure.
func (r *Reports) Complain(problem string) {
	if r.problem == "" {
		r.problem = Bounded(problem, 512)
		r.Log.Warn("saw "+r.problem, telemetry.LogReason, "further ones are not logged")
	}
}

// Seen describes what was reported instead of a metric that is needed, and the first problem;
// empty if there is nothing of either.
func (r *Reports) Seen() string {
	names := r.Names()
	if len(names) == 0 {
		return r.problem
	}
	quoted := make([]string, 0, maxNames)
	for _, name := range names[:min(len(names), maxNames)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	text := strings.Join(quoted, ", ")
	if n := len(names) - maxNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if r.problem != "" {
		text += ", and " + r.problem
	}
	return text
}

// Ending returns the ending of an evaluation that has reported all that it will; nil if the
// metric of an objective or of a limit was not reported: see Missing. A value that cannot be read is a failure, whatever was reported
// before: it may have diverged.
func (r *Reports) Ending() *Ending {
	if _, why := r.Unread(); why != "" {
		return new(Failed(messaging.ReasonNoValue, why))
	}
	if r.Missing() == "" {
		values, _ := r.Values()
		return new(Valued(r.task.Assignment.Objectives(), values))
	}
	return nil
}

// Reached returns the objectives' values so far; nil if one is unknown or not finite.
func (r *Reports) Reached() study.Values {
	if values, missing := r.Values(); missing == "" && AllFinite(values) {
		return values
	}
	return nil
}

// AllFinite reports whether all values are finite.
func AllFinite(values study.Values) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !study.Finite(v) })
}

// Conclude adds what was reported to an ending, and bounds its message.
func (r *Reports) Conclude(e *Ending) {
	e.Metrics, e.Checkpoint = r.Final(), r.Checkpoint
	if e.Outcome == messaging.OutcomePruned {
		e.Values = r.Reached()
	}
	if f := e.Failure; f != nil {
		f.Message = Bounded(f.Message, messaging.MaxMessage)
	}
}
