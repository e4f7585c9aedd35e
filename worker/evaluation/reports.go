package evaluation

import (
	"fmt"
	"log/slog"
	"os"
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
	// Continues says that reports of earlier attempts are among them.
	Continues bool

	// Log names the attempt.
	Log *slog.Logger

	task    Task
	problem string // the first problem with a report
	warning string // the first one
	warned  int    // how many there were
}

// NewReports returns the reports of an attempt that begins. saved says that earlier attempts have left
// checkpoints where its program looks for them. Then, or if they have reported a checkpoint, what they
// have reported counts as well.
func NewReports(task Task, saved bool, log *slog.Logger) *Reports {
	a := task.Assignment
	r := &Reports{
		Collector: report.NewCollector(a.Objectives(), a.LimitMetrics()...), Checkpoint: a.Checkpoint, task: task,
		Log: log.With(telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt),
	}
	if r.Continues = a.Reached != nil && (saved || a.Checkpoint != ""); r.Continues {
		r.Continue(a.Reached)
	}
	return r
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
	if taken.Warning != "" {
		r.Warn(taken.Warning)
	}
	return append(taken.Ignored, taken.Late...)
}

// Warn keeps the first warning for the people who look at a trial that has completed.
func (r *Reports) Warn(text string) {
	if r.warned++; r.warned == 1 {
		r.warning = Bounded(text, 512)
		r.Log.Warn(r.warning, telemetry.LogReason, "further warnings are not logged")
	}
}

// AddAll takes reports and the error of those that cannot be read, and calls each for every
// report.
func (r *Reports) AddAll(reports []report.Report, err error, each func(report.Report)) {
	if err != nil {
		r.Complain("an unreadable report: " + err.Error())
	}
	for _, one := range reports {
		r.Add(one)
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

// ValuesSoFar returns the objectives' values so far; nil if one is unknown or not finite.
func (r *Reports) ValuesSoFar() study.Values {
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
	switch e.Outcome {
	case messaging.OutcomeCompleted, messaging.OutcomeInfeasible:
	case messaging.OutcomePruned: // what it has reached says whether anything was left to do
		e.Values, e.Reached = r.ValuesSoFar(), r.Collector.Reached(r.task.Assignment.Attempt)
	default:
		e.Reached = r.Collector.Reached(r.task.Assignment.Attempt)
	}
	if e.Outcome == messaging.OutcomeCompleted && e.Failure == nil && r.warning != "" {
		e.Failure = &messaging.Failure{Reason: messaging.ReasonReports, Message: "warning: " + r.warning}
		if r.warned > 1 {
			e.Failure.Message += fmt.Sprintf(" (%d times in all)", r.warned)
		}
	}
	if f := e.Failure; f != nil {
		f.Message = Bounded(f.Message, messaging.MaxMessage)
	}
}

// Reported returns the ending that a program reported itself: the point is infeasible,
// it wants to be run again, or it has failed. The reason may be empty. The first one
// set counts; the result is nil if all are nil.
func Reported(infeasible, retry, failed *string) *Ending {
	switch {
	case infeasible != nil:
		return said(messaging.OutcomeInfeasible, messaging.ReasonInfeasible, "infeasible", *infeasible)
	case retry != nil:
		return said(messaging.OutcomeHandedBack, messaging.ReasonRetry, "the program asked for a retry", *retry)
	case failed != nil:
		return said(messaging.OutcomeFailed, messaging.ReasonReported, "the program reported an error", *failed)
	default:
		return nil
	}
}

func said(outcome messaging.Outcome, reason, what, why string) *Ending {
	if why != "" {
		what += ": " + why
	}
	return &Ending{Outcome: outcome, Failure: &messaging.Failure{Reason: reason, Message: what}}
}

// Bounded returns the beginning of a text, at most n bytes of valid UTF-8.
func Bounded(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}

// HasFiles reports whether anything is in a directory, which need not exist.
func HasFiles(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer func() { _ = d.Close() }() // only read
	names, _ := d.Readdirnames(1)    // no names with an error
	return len(names) > 0
}
