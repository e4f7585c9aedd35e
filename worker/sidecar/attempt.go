package sidecar

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// attempt is an attempt that a client has, will have, or had. The sidecar's lock guards
// its mutable fields.
type attempt struct {
	id         string
	task       evaluation.Task
	parameters []byte // a JSON object
	offeredAt  time.Time

	client  *client // nil until a client has taken it
	handed  int
	heard   time.Time // time of the client's last message
	reports *evaluation.Reports
	// stop is why the client should stop; nil while it should not. told says that the
	// client knows.
	stop error
	told bool
	// end is the client's own ending of the attempt; nil until it is given.
	end *evaluation.Ending
	// ended is closed when the client has ended the attempt or given it up.
	ended   chan struct{}
	isEnded bool
	// outcome is the attempt's outcome; empty while it is open.
	outcome messaging.Outcome
	message string
	// durable is closed when the ending is on disk.
	durable chan struct{}
}

// newAttempt prepares an attempt. Clients name it by its id, which the nonce makes
// unique. checkpoints is the folder of checkpoints; empty if there is none.
func newAttempt(task evaluation.Task, checkpoints string, log *slog.Logger) (*attempt, error) {
	as := task.Assignment
	env, err := study.Environment(as.ParameterOrder, as.Parameters)
	if err != nil {
		return nil, err
	}
	object := "{}"
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "FANTASIA_PARAMETERS="); ok {
			object = value
		}
	}
	a := &attempt{
		id: fmt.Sprintf("%d.%d.%s", as.Trial, as.Attempt, as.Nonce), task: task, parameters: []byte(object), offeredAt: time.Now(),
		ended: make(chan struct{}), durable: make(chan struct{}),
	}
	dir := a.checkpointDir(checkpoints)
	a.reports = evaluation.NewReports(task, dir != "" && evaluation.HasFiles(dir), log)
	return a, nil
}

// checkpointDir returns the trial's directory of checkpoints below dir; "" if dir is "".
func (a *attempt) checkpointDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(a.task.Assignment.CheckpointKey()))
}

// addReport takes a client's report. The caller MUST hold the lock.
func (a *attempt) addReport(r *report.Report) (ignored []string) {
	a.heard = time.Now()
	return a.reports.Add(*r)
}

// complete takes the client's ending; the first one counts. The caller MUST hold the
// lock.
func (a *attempt) complete(r *report.Report) {
	if a.outcome != "" || a.end != nil {
		return
	}
	a.addReport(r)
	a.end = new(a.ending(r))
	a.finish()
}

// finish records that the client is done with the attempt. The caller MUST hold the
// lock.
func (a *attempt) finish() {
	if !a.isEnded {
		a.isEnded = true
		close(a.ended)
	}
}

// ending returns the ending that a client's report asks for.
func (a *attempt) ending(r *report.Report) evaluation.Ending {
	if e := evaluation.Reported(r.Infeasible, r.Retry, r.Error); e != nil {
		return *e
	}
	if e := a.reports.Ending(); e != nil {
		return *e
	}
	return evaluation.Failed(messaging.ReasonNoValue, a.missing(a.reports.Missing()))
}

// missing describes what was seen instead of an objective's metric.
func (a *attempt) missing(metric string) string {
	names := a.reports.Names()
	if len(names) == 0 {
		return fmt.Sprintf("no %q; no metric was reported", metric)
	}
	const shown = 10
	more := ""
	if n := len(names) - shown; n > 0 {
		names, more = names[:shown], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("no %q; saw %q%s", metric, names, more)
}

// conclude moves the attempt to the past ones and returns its ending: the client's own,
// unless otherwise takes precedence. Later messages do not count.
func (s *Sidecar) conclude(a *attempt, otherwise *evaluation.Ending) evaluation.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e evaluation.Ending
	switch {
	case a.end != nil && (otherwise == nil || otherwise.Outcome == messaging.OutcomeHandedBack ||
		otherwise.Outcome == messaging.OutcomeFailed ||
		otherwise.Outcome == messaging.OutcomePruned && !a.told): // it ran to its end, since it did not know that it should stop
		e = *a.end // keep what the client has done
	case otherwise != nil:
		e, a.end = *otherwise, nil
	case s.leaving: // it gave up the attempt as it was told
		e = evaluation.StopEnding(evaluation.ErrLeaving)
	default: // it gave up the attempt
		e = evaluation.Failed(messaging.ReasonClient, fmt.Sprintf("the training code asked for its trial %d times and never ended it", a.handed))
	}
	if a.reports.Conclude(&e); e.Failure != nil {
		a.message = e.Failure.Message
	}
	a.outcome = e.Outcome
	a.finish()
	if a.client != nil && a.client.attempt == a {
		a.client.attempt = nil
	}
	s.withdraw(a)
	delete(s.open, a.id)
	s.past[a.id] = a
	if s.pastIDs = append(s.pastIDs, a.id); len(s.pastIDs) > maxPast {
		delete(s.past, s.pastIDs[0])
		s.pastIDs = s.pastIDs[1:]
	}
	as := a.task.Assignment
	s.options.Logger.Debug("attempt ended", telemetry.LogStudy, as.StudyName, telemetry.LogTrial, as.Trial,
		telemetry.LogAttempt, as.Attempt, "outcome", e.Outcome, telemetry.LogReason, a.message)
	s.broadcast()
	return e
}

// withdraw removes an attempt from those that wait for a client. The caller MUST hold
// the lock.
func (s *Sidecar) withdraw(a *attempt) {
	s.offered = slices.DeleteFunc(s.offered, func(o *attempt) bool { return o == a })
}
