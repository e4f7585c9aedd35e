package command

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// session collects what a program reports during one attempt. It is safe for concurrent
// use: stdout, stderr and the report file are read at once.
type session struct {
	task    evaluation.Task
	pattern *report.Pattern
	log     *slog.Logger
	// ended is closed when a report ends the attempt.
	ended chan struct{}

	mu         sync.Mutex
	collector  *report.Collector
	end        *evaluation.Ending // from the report that ended the attempt; nil for done
	over       bool               // ended is closed
	sealed     bool               // the ending is decided; later reports do not count
	checkpoint string
	problem    string // the first problem with a report
	ignored    bool   // a warning about ignored values was logged
}

func newSession(task evaluation.Task, log *slog.Logger) (*session, error) {
	a := task.Assignment
	if task.Measure == nil {
		task.Measure = func(int64, map[string]float64) {}
	}
	s := &session{
		task: task, collector: report.NewCollector(a.Objective), ended: make(chan struct{}),
		checkpoint: a.Checkpoint,
		log:        log.With(telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt),
	}
	if m := a.Run.Metrics; m != nil && m.Pattern != "" {
		var err error
		if s.pattern, err = report.NewPattern(m.Pattern); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// line handles a line of output. Reports are read only from stdout and the report file;
// a pattern from stdout and stderr.
func (s *session) line(line []byte, stderr bool) {
	if !stderr {
		reports, err := report.Parse(line)
		s.takeReports(reports, err)
	}
	if s.pattern != nil {
		reports, err := s.pattern.Find(line)
		s.takeReports(reports, err)
	}
}

// takeReports handles reports and errors of unreadable ones.
func (s *session) takeReports(reports []report.Report, err error) {
	if err == nil && len(reports) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return
	}
	if err != nil {
		s.complain("an unreadable report: " + err.Error())
	}
	for _, r := range reports {
		s.add(r)
	}
}

// complain keeps the first problem for the message of a failure. The caller MUST hold
// the lock.
func (s *session) complain(problem string) {
	if s.problem == "" {
		s.problem = evaluation.Bounded(problem, 512)
		s.log.Warn("saw "+s.problem, telemetry.LogReason, "further ones are not logged")
	}
}

func (s *session) add(r report.Report) {
	if r.Checkpoint != "" {
		s.checkpoint = r.Checkpoint
	}
	if len(r.Metrics) > 0 {
		taken := s.collector.Add(r)
		if len(taken.Ignored) > 0 && !s.ignored {
			s.ignored = true
			s.log.Warn("a value is ignored; further ones are not logged", telemetry.LogReason, taken.Ignored[0])
		}
		if len(taken.Metrics) > 0 {
			s.task.Measure(taken.Step, taken.Metrics)
		}
	}
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
	return s.collector.Reports > 0
}

// conclude returns the attempt's ending. stopped is the cause if it was stopped from
// outside, exited how the program ended (nil if it still runs), logs the directory of
// its logs.
func (s *session) conclude(stopped error, exited *exit, c *capture, logs string) evaluation.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
	e := s.outcome(stopped, exited, c)
	e.Metrics, e.Checkpoint, e.Logs = s.collector.Final(), s.checkpoint, logs
	if f := e.Failure; f != nil {
		f.Message = evaluation.Bounded(f.Message, messaging.MaxMessage)
		// The exit of a stopped program carries no information.
		if stopped == nil && !s.over && exited != nil {
			describe(f, exited)
		}
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
		if e.Outcome == messaging.OutcomePruned {
			e.Values = s.reached()
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
		return evaluation.Failed(messaging.ReasonSignal, withWords(fmt.Sprintf("killed by signal %d (%s); see %s", int(exited.signal), exited.signal, c.stderr.path), c))
	case exited.code != 0:
		return evaluation.Failed(messaging.ReasonExit, withWords(fmt.Sprintf("exit code %d; see %s", exited.code, c.stderr.path), c))
	default:
		return s.value(c)
	}
}

// reached returns the objective's value so far; nil if it is unknown or not finite.
func (s *session) reached() study.Values {
	if value, ok := s.collector.Value(); ok && report.Finite(value) {
		return study.Values{value}
	}
	return nil
}

// value returns the ending of a program that exited successfully.
func (s *session) value(c *capture) evaluation.Ending {
	metric := s.task.Assignment.Objective.Metric
	value, ok := s.collector.Value()
	switch {
	case !ok:
		return evaluation.Failed(messaging.ReasonNoValue, withWords(s.missing(metric, c), c))
	case !report.Finite(value):
		return evaluation.Diverged(metric, value)
	default:
		return evaluation.Ending{Outcome: messaging.OutcomeCompleted, Values: []float64{value}}
	}
}
