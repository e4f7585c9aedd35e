package command

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// session collects what a program reports during one attempt. It is safe for concurrent
// use: stdout, stderr and the report file are read at once.
type session struct {
	task    evaluation.Task
	pattern *report.Pattern
	// ended is closed when a report ends the attempt.
	ended chan struct{}

	mu      sync.Mutex
	reports *evaluation.Reports
	end     *evaluation.Ending // from the report that ended the attempt; nil for done
	over    bool               // ended is closed
	sealed  bool               // the ending is decided; later reports do not count
}

// newSession begins an attempt. saved says that the trial has checkpoints.
func newSession(task evaluation.Task, saved bool, log *slog.Logger) (*session, error) {
	pattern, err := report.PatternOf(&task.Assignment.Run, task.Assignment.MetricNames())
	if m := task.Assignment.Run.Metrics; m != nil && m.Events != "" && !filepath.IsLocal(m.Events) {
		err = fmt.Errorf("spec.trial.metrics.events is %q, a path that only the container of a Job can have; here it must "+
			"be inside of the trial's directory, such as logs, where the program writes to $FANTASIA_TRIAL_DIR/logs", m.Events)
	}
	return &session{task: task, pattern: pattern, reports: evaluation.NewReports(task, saved, log), ended: make(chan struct{})}, err
}

// line handles a line of output. Reports are read only from stdout and the report file;
// a pattern from stdout and stderr.
func (s *session) line(line report.Line, from messaging.LogStream) {
	if from == messaging.LogStdout {
		s.addReports(line.Read(string(from), report.Parse))
	}
	s.match(line, from)
}

// match looks for metrics.pattern in a line.
func (s *session) match(line report.Line, from messaging.LogStream) {
	if s.pattern == nil {
		return
	}
	reports, err := line.Read(string(from), s.pattern.Find)
	s.addReports(reports, err)
	if s.task.Matched == nil || len(reports) == 0 {
		return
	}
	read := map[string]float64{}
	for _, r := range reports {
		maps.Copy(read, r.Metrics)
	}
	s.task.Matched(string(line.Text), read)
}

// addReports handles reports and errors of unreadable ones.
func (s *session) addReports(reports []report.Report, err error) {
	if err == nil && len(reports) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return
	}
	s.reports.AddAll(reports, err, s.finish)
}

// complain keeps the first problem for the message of a failure.
func (s *session) complain(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports.Complain(problem)
}

// warn keeps what the person should see of a trial that completes.
func (s *session) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports.Warn(text)
}

// finish ends the attempt if a report says so; the first one counts. The caller MUST hold the
// lock.
func (s *session) finish(r report.Report) {
	if s.over {
		return
	}
	s.end = evaluation.Reported(r.Infeasible, r.Retry, r.Error)
	if s.end == nil && (!r.Done || s.task.Assignment.Run.Mode != study.ModeStream) {
		return // a process is done when it exits
	}
	s.over = true
	close(s.ended)
}

// isEnded reports whether a report has ended the attempt.
func (s *session) isEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// spoke reports whether any metric was reported.
func (s *session) spoke() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reports.Reports > 0
}

// conclude returns the attempt's ending. stopped is the cause if it was stopped from
// outside, exited how the program ended (nil if it still runs), logs the directory of
// its logs.
func (s *session) conclude(stopped error, exited *exit, c *capture, logs string) evaluation.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
	e := s.outcome(stopped, exited, c)
	s.reports.Conclude(&e)
	e.Logs = logs
	// The exit of a stopped program carries no information.
	if e.Failure != nil && stopped == nil && !s.over && exited != nil {
		describe(e.Failure, exited)
	}
	return e
}

func describe(f *messaging.Failure, e *exit) {
	if e.signal != 0 {
		f.Signal = e.signal.String()
	} else if e.code >= 0 {
		f.ExitCode = &e.code
	}
}

func (s *session) outcome(stopped error, exited *exit, c *capture) evaluation.Ending {
	switch {
	case stopped != nil:
		e := evaluation.StopEnding(stopped)
		if e.Outcome == messaging.OutcomeTimeout {
			e.Failure.Message = withWords(fmt.Sprintf("ran longer than its timeout of %s; see %s", s.task.Assignment.Run.Timeout, c.stderr.path), c)
		}
		return e
	case s.end != nil:
		return *s.end
	case s.over || exited == nil: // done
		return s.value(c)
	case exited.code == exitRetry:
		return evaluation.Ending{Outcome: messaging.OutcomeHandedBack, Failure: &messaging.Failure{
			Reason: messaging.ReasonRetry, Message: fmt.Sprintf("the program asked for a retry (exit code %d)", exitRetry),
		}}
	case exited.stuck:
		return evaluation.Failed(messaging.ReasonSignal, "the program did not end even when killed")
	case exited.signal != 0:
		return evaluation.Failed(messaging.ReasonSignal, withWords(fmt.Sprintf("killed by signal %d (%s); see %s",
			int(exited.signal), exited.signal, c.stderr.path), c))
	case exited.code != 0:
		return evaluation.Failed(messaging.ReasonExit, withWords(fmt.Sprintf("exit code %d; see %s", exited.code, c.stderr.path), c))
	default:
		return s.value(c)
	}
}

// value returns the ending of a program that exited successfully.
func (s *session) value(c *capture) evaluation.Ending {
	if e := s.reports.Ending(); e != nil {
		return *e
	}
	return evaluation.Failed(messaging.ReasonNoValue, withWords(s.missing(s.reports.Missing(), c), c))
}
