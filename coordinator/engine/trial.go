package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// trial is a trial's record and what the engine keeps of it in memory alone.
type trial struct {
	rec record.Trial
	// due is when the last attempt is published again if nobody has claimed it.
	due time.Time
	// claimed is when the last attempt's claim was read.
	claimed time.Time
	// sent is what the record of an attempt is still to say.
	sent    sent
	changed bool // in the engine's list of changes
	curveOf
}

const (
	// textsFirst and textsLast are how many attempts at a trial's begin and
	// before its newest one keep their messages and where their logs are.
	textsFirst = 1
	textsLast  = 3
	// maxRecord bounds a trial's record, in bytes of JSON, when it gets another
	// attempt. The ledger takes 1 MiB: the rest is for that attempt's result,
	// whose bytes escapes can make six of.
	maxRecord = 640 << 10
)

// sent is when an attempt was durable and when the broker had it.
type sent struct {
	attempt              int // its number
	committed, published time.Time
}

// changes are the records to commit at the end of a step.
type changes struct {
	trials        []*trial
	status, model bool
	spec          bool
	curves        []*trial
}

// touch marks a trial's record as changed.
func (e *Engine) touch(t *trial) {
	if n := t.sent.attempt; n > 0 {
		if a := &t.rec.Attempts[n-1]; a.Published.IsZero() {
			a.Committed, a.Published = t.sent.committed, t.sent.published
		}
	}
	if !t.changed {
		t.changed = true
		e.dirty.trials = append(e.dirty.trials, t)
	}
}

// setState moves a trial and the study's counts.
func (e *Engine) setState(t *trial, s study.TrialState) {
	if n := e.count(t.rec.State); n != nil {
		*n--
	}
	t.rec.State = s
	*e.count(s)++
	e.dirty.status = true
	e.touch(t)
}

// count is the counter of a trial's state; nil for a trial without one yet.
func (e *Engine) count(s study.TrialState) *int {
	c := &e.status.Counts
	switch s {
	case study.TrialPending:
		return &c.Pending
	case study.TrialQueued:
		return &c.Queued
	case study.TrialClaimed, study.TrialRunning:
		return &c.Running
	case study.TrialCompleted:
		return &c.Completed
	case study.TrialFailed:
		return &c.Failed
	case study.TrialInfeasible:
		return &c.Infeasible
	case study.TrialPruned:
		return &c.Pruned
	case study.TrialCancelled:
		return &c.Cancelled
	default:
		return nil
	}
}

// find returns the attempt that an id names; nil where the study, the trial,
// the attempt or its nonce is another.
func (e *Engine) find(id messaging.AttemptID) (*trial, *record.Attempt) {
	if id.Study != e.spec.ID || id.Trial < 1 || id.Trial > len(e.trials) {
		return nil, nil
	}
	t := e.trials[id.Trial-1]
	if id.Attempt < 1 || id.Attempt > len(t.rec.Attempts) {
		return nil, nil
	}
	a := &t.rec.Attempts[id.Attempt-1]
	if a.Nonce != id.Nonce && e.on(guardNonce) {
		return nil, nil
	}
	return t, a
}

// attemptID names an attempt of a trial.
func (e *Engine) attemptID(t *trial, a *record.Attempt) messaging.AttemptID {
	return messaging.AttemptID{Study: e.spec.ID, Trial: t.rec.Number, Attempt: a.Number, Nonce: a.Nonce}
}

// openAttempt hands a pending trial out: its next attempt that can be claimed, to
// be published. A trial that can have no such attempt has failed.
func (e *Engine) openAttempt(t *trial) {
	for {
		t.shorten()
		t.rec.Attempts = append(t.rec.Attempts, record.Attempt{
			Number: len(t.rec.Attempts) + 1,
			Nonce:  e.ids.Nonce(),
			State:  study.AttemptOpen,
			Opened: e.now,
		})
		// The trial's times are those of its current attempt.
		t.rec.Times.Claimed, t.rec.Times.Started, t.rec.Times.Ended = time.Time{}, time.Time{}, time.Time{}
		e.setState(t, study.TrialQueued)
		a := t.rec.Last()
		if !e.occupied(t, a.Number) {
			e.publish(t)
			return
		}
		if !e.forfeit(t, a) {
			return
		}
	}
}

// requeue puts a trial whose attempt ended back, for its next attempt.
func (e *Engine) requeue(t *trial) {
	if !e.filled(t) {
		e.wait(t)
	}
}

// filled fails a trial whose record has no room for another attempt, and reports
// whether it did.
func (e *Engine) filled(t *trial) bool {
	if !t.full() {
		return false
	}
	t.rec.Last().Failure = &messaging.Failure{
		Reason:  messaging.ReasonAttempts,
		Message: fmt.Sprintf("the record of a trial has no room for attempt %d", len(t.rec.Attempts)+1),
	}
	t.rec.Times.Ended = e.now
	e.endTrial(t, study.TrialFailed)
	return true
}

// wait lets a trial wait for its next attempt.
func (e *Engine) wait(t *trial) {
	e.setState(t, study.TrialPending)
	e.pending = append(e.pending, t)
}

// shorten drops what the attempts between the first and the last few say for
// people: of hundreds of attempts, each with its program's last words, the
// record would outgrow what the ledger takes.
func (t *trial) shorten() {
	for i := textsFirst; i < len(t.rec.Attempts)-textsLast; i++ {
		a := &t.rec.Attempts[i]
		a.Logs = ""
		if f := a.Failure; f != nil && f.Message != "" {
			a.Failure = &messaging.Failure{Reason: f.Reason, ExitCode: f.ExitCode, Signal: f.Signal} // snapshots share f
		}
	}
}

// full reports whether a trial's record has no room for another attempt.
func (t *trial) full() bool {
	if len(t.rec.Attempts) <= textsFirst+textsLast {
		return false
	}
	raw, err := json.Marshal(&t.rec)
	return err != nil || len(raw) > maxRecord
}

// endTrial moves a trial to a terminal state and tells the optimiser's history.
func (e *Engine) endTrial(t *trial, s study.TrialState) {
	e.setState(t, s)
	e.status.Position++
	t.rec.Ended = e.status.Position
	t.rec.Times.Folded = e.now
	if i, ok := slices.BinarySearchFunc(e.open, t.rec.Number, byNumber); ok {
		e.open = slices.Delete(e.open, i, i+1)
	}
	t.at = e.now
	e.cooling = append(e.cooling, t)
	e.observe(t)
	e.out.Ended = append(e.out.Ended, snapshot(t))
}

// observe appends an ended trial to the history and keeps the best one. A
// cancelled trial says nothing of its point.
func (e *Engine) observe(t *trial) {
	o := optimizer.Observation{Trial: t.rec.Number, Point: t.rec.Point}
	switch t.rec.State {
	case study.TrialCompleted:
		o.Outcome, o.Values = optimizer.OutcomeCompleted, t.rec.Values
		if e.best == nil || e.direction().Better(t.rec.Values.First(), e.best.rec.Values.First()) {
			e.best, e.status.Best = t, t.rec.Number
		}
	case study.TrialInfeasible:
		o.Outcome = optimizer.OutcomeInfeasible
	case study.TrialFailed:
		o.Outcome = optimizer.OutcomeFailed
	default:
		if key := e.space.Key(t.rec.Point); e.taken[key] == t.rec.Created {
			delete(e.taken, key)
		}
		return
	}
	e.observations = append(e.observations, o)
}

// direction says which way the study's objective improves.
func (e *Engine) direction() study.Direction { return e.spec.Definition.Spec.Objective.Direction }

// byNumber orders trials for a binary search.
func byNumber(t *trial, number int) int { return t.rec.Number - number }

// snapshot copies a trial's record so that later steps do not change it.
func snapshot(t *trial) record.Trial {
	r := t.rec
	r.Attempts = slices.Clone(r.Attempts)
	return r
}

// durations is a running mean.
type durations struct {
	sum time.Duration
	n   int
}

// add counts an evaluation from its start to its end; clocks that went back are ignored.
func (d *durations) add(start, end time.Time) {
	if start.IsZero() || end.Before(start) {
		return
	}
	d.sum += end.Sub(start)
	d.n++
}

// mean is the mean duration; ok is false where nothing was counted.
func (d *durations) mean() (mean time.Duration, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	return d.sum / time.Duration(d.n), true
}

// allFinite reports whether all values are numbers.
func allFinite(values study.Values) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !finite(v) })
}

// finite reports whether x is a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
