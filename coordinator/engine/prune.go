package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
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

// stopper is the study's rule for stopping trials early.
type stopper struct {
	rule      pruner.Pruner // nil if the study stops no trial early
	metric    string        // that the rule compares
	objective int           // index of the objective with that metric; -1 for none
	direction study.Direction
}

// newStopper returns the stopper of a study, which no update changes: see study.Compatible.
func newStopper(spec *record.Study, settings Settings) (stopper, error) {
	d := &spec.Definition
	s := d.Spec.EarlyStopping
	if s == nil {
		return stopper{}, nil
	}
	direction, objectives := d.Spec.FirstObjective().Direction, d.Spec.Objectives()
	objective := slices.IndexFunc(objectives, func(o study.Objective) bool { return o.Metric == s.Metric })
	if objective >= 0 {
		direction = objectives[objective].Direction
	}
	rule, err := settings.Pruner(*s, direction)
	if err != nil {
		return stopper{}, fmt.Errorf("study %s (%s): early stopping: %w", d.Metadata.Name, spec.ID, err)
	}
	return stopper{rule, s.Metric, objective, direction}, nil
}

// report tells the rule what a trial has reported, and returns whether the rule says to stop
// the trial. The rule ignores steps that it knows, as of an earlier attempt.
func (s *stopper) report(m *messaging.Measurement) pruner.Verdict {
	if s.rule == nil {
		return pruner.Verdict{}
	}
	v, ok := m.Metrics[s.metric]
	if slices.Contains(m.Diverged, s.metric) {
		v, ok = math.NaN(), true
	}
	if !ok {
		return pruner.Verdict{}
	}
	return s.rule.Report(m.Trial, m.Step, s.direction.Cost(v))
}

// recount tells the rule a curve that was read from the ledger. What the rule says then
// is no decision: decisions are in the trials' records.
func (s *stopper) recount(trial int, c *recent) {
	if s.rule == nil || c == nil {
		return
	}
	for _, series := range c.Series() {
		if series.Metric != s.metric {
			continue
		}
		for _, p := range series.Points {
			s.rule.Report(trial, p.Step, s.direction.Cost(p.Value))
		}
	}
}

// end tells the rule how a trial has ended. One that completed outside of a limit is not one
// that others are compared with.
func (s *stopper) end(spec *study.Spec, t *record.Trial) {
	if s.rule == nil {
		return
	}
	cost, completed := math.NaN(), t.State == study.TrialCompleted && spec.Within(t.Values, t.Metrics)
	if v, ok := t.Metrics[s.metric]; completed && s.objective >= 0 {
		cost = s.direction.Cost(t.Values[s.objective])
	} else if completed && ok {
		cost = s.direction.Cost(v)
	}
	s.rule.End(t.Number, completed, cost)
}

// prune decides to stop a trial early, unless that is decided already, or the report
// does not come from the attempt that would be stopped.
func (e *Engine) prune(t *trial, m *messaging.Measurement, reason string) {
	a := t.rec.Last()
	if t.rec.State.Terminal() || a == nil || a.Number != m.Attempt || a.State != study.AttemptOpen ||
		t.rec.Stopped != nil && e.spec.on(safetyOnce) {
		return
	}
	t.rec.Stopped = &record.Stopped{
		Attempt: a.Number, Step: m.Step, Values: reachedAll(e.spec.Definition.Spec.Objectives(), t.curve, m), Reason: clip(reason), At: e.step.now,
	}
	e.keepEarly(t, nil, nil)
	e.step.touch(t)
	e.tellToStop(t, a)
}

// tellToStop tells the worker of an attempt to stop it early if that is decided.
func (e *Engine) tellToStop(t *trial, a *record.Attempt) {
	if t.rec.Stopped != nil && a.Worker != "" {
		e.step.out.Cancels = append(e.step.out.Cancels, Cancel{Worker: a.Worker, Attempt: e.spec.attemptID(t, a), Reason: t.rec.Stopped.Reason, Prune: true})
	}
}

// reachedAll returns the values that a trial has reached by its curve, of which m is the last
// report; nil if an objective has not been reported or has diverged.
func reachedAll(objectives []study.Objective, c *recent, m *messaging.Measurement) study.Values {
	var values study.Values
	for i := range objectives {
		v, ok := reached(&objectives[i], c, m)
		if !ok {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// reached returns the value of one objective; ok is false if it has not been reported or has
// diverged.
func reached(o *study.Objective, c *recent, m *messaging.Measurement) (value float64, ok bool) {
	last, reported := m.Metrics[o.Metric]
	diverged := slices.Contains(m.Diverged, o.Metric) || reported && !finite(last)
	if c == nil || c.Attempt != m.Attempt || diverged && o.Take != study.TakeBest {
		return 0, false
	}
	for _, s := range c.Series() {
		if s.Metric != o.Metric {
			continue
		}
		value = s.Points[len(s.Points)-1].Value
		if o.Take == study.TakeBest {
			value = best(o.Direction, s.Points)
		}
		return value, true
	}
	return 0, false
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
	if t.rec.Stopped == nil || !e.spec.on(safetyPruned) {
		return false
	}
	if t.rec.Values == nil {
		t.rec.Values = t.rec.Stopped.Values
	}
	if t.rec.Times.Ended.IsZero() {
		t.rec.Times.Ended = e.step.now
	}
	e.history.fold(t, study.TrialPruned)
	return true
}
