package engine

import (
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// # How a trial is stopped early
//
// The study's rule sees every report of the metric that it compares. If it says to stop
// a trial, the engine stores that in the trial's record, and tells the worker once the
// record is committed. The trial stays open until its attempt has ended. Then it is
// PRUNED, however the attempt ended: stopped, failed, handed back or lost. Only an
// answer that comes first takes precedence. The worker is told again at each heartbeat
// that reports the attempt, so it does not matter if a leader dies, or if a message is
// lost.

// newPruner sets the study's rule; nil if the study stops no trial early.
func (e *Engine) newPruner() error {
	s := e.spec.Definition.Spec.EarlyStopping
	if s == nil || e.pruner != nil { // it cannot change: see study.Compatible
		return nil
	}
	p, err := e.settings.Pruner(*s, e.direction())
	if err != nil {
		return fmt.Errorf("study %s (%s): early stopping: %w", e.spec.Definition.Metadata.Name, e.spec.ID, err)
	}
	e.pruner = p
	return nil
}

// compared returns the metric that the study's rule compares.
func (e *Engine) compared() string { return e.spec.Definition.Spec.EarlyStopping.Metric }

// judge tells the rule what a trial has reported, and decides to stop the trial if the
// rule says so. The rule ignores steps that it knows, as of an earlier attempt.
func (e *Engine) judge(t *trial, m *messaging.Measurement) {
	if e.pruner == nil {
		return
	}
	v, ok := m.Metrics[e.compared()]
	if !ok || !finite(v) {
		return
	}
	if verdict := e.pruner.Report(t.rec.Number, m.Step, e.direction().Cost(v)); verdict.Stop {
		e.prune(t, m, verdict.Reason)
	}
}

// recount tells the rule a curve that was read from the ledger. What the rule says then
// is no decision: decisions are in the trials' records.
func (e *Engine) recount(t *trial) {
	if e.pruner == nil || t.curve == nil {
		return
	}
	for _, s := range t.curve.Series() {
		if s.Metric != e.compared() {
			continue
		}
		for _, p := range s.Points {
			e.pruner.Report(t.facts().number, p.Step, e.direction().Cost(p.Value))
		}
	}
}

// conclude tells the rule how a trial has ended.
func (e *Engine) conclude(t *trial) {
	if e.pruner == nil {
		return
	}
	cost, completed := math.NaN(), t.rec.State == study.TrialCompleted
	if v, ok := t.rec.Metrics[e.compared()]; completed && e.compared() == e.spec.Definition.Spec.Objective.Metric {
		cost = e.direction().Cost(t.rec.Values.First())
	} else if completed && ok {
		cost = e.direction().Cost(v)
	}
	e.pruner.End(t.rec.Number, completed, cost)
}

// prune decides to stop a trial early, unless that is decided already, or the report
// does not come from the attempt that would be stopped.
func (e *Engine) prune(t *trial, m *messaging.Measurement, reason string) {
	a := t.rec.Last()
	if t.rec.State.Terminal() || a == nil || a.Number != m.Attempt || a.State != study.AttemptOpen ||
		t.rec.Stopped != nil && e.on(safetyOnce) {
		return
	}
	t.rec.Stopped = &record.Stopped{
		Attempt: a.Number, Step: m.Step, Values: e.reached(t), Reason: clip(reason), At: e.now,
	}
	e.touch(t)
	e.tellToStop(t, a)
}

// tellToStop tells the worker of an attempt to stop it early if that is decided.
func (e *Engine) tellToStop(t *trial, a *record.Attempt) {
	if t.rec.Stopped != nil && a.Worker != "" {
		e.out.Cancels = append(e.out.Cancels, Cancel{Worker: a.Worker, Attempt: e.attemptID(t, a), Reason: t.rec.Stopped.Reason, Prune: true})
	}
}

// reached returns the value that a trial has reached by its curve; nil if the objective
// has not been reported.
func (e *Engine) reached(t *trial) study.Values {
	o := &e.spec.Definition.Spec.Objective
	for _, s := range t.curve.Series() {
		if s.Metric != o.Metric {
			continue
		}
		value := s.Points[len(s.Points)-1].Value
		if o.Take == study.TakeBest {
			value = best(o.Direction, s.Points)
		}
		return study.Values{value}
	}
	return nil
}

// best returns the best value of at least one point.
func best(d study.Direction, points []curve.Point) float64 {
	b := points[0].Value
	for _, p := range points {
		if d.Better(p.Value, b) {
			b = p.Value
		}
	}
	return b
}

// pruned ends a trial whose attempt has ended without an answer if it was decided to
// stop the trial early, and reports whether it was.
func (e *Engine) pruned(t *trial) bool {
	if t.rec.Stopped == nil || !e.on(safetyPruned) {
		return false
	}
	if t.rec.Values == nil {
		t.rec.Values = t.rec.Stopped.Values
	}
	if t.rec.Times.Ended.IsZero() {
		t.rec.Times.Ended = e.now
	}
	e.endTrial(t, study.TrialPruned)
	return true
}
