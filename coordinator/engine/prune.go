package engine

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// pruning stops trials early, and keeps what they have reached.
//
// The study's rule sees every report of the metric that it compares. If it says to stop
// a trial, the engine stores that in the trial's record, and tells the worker once the
// record is committed. The trial stays open until its attempt has ended. Then it is
// PRUNED, however the attempt ended: stopped, failed, handed back or lost. Only an
// answer that comes first takes precedence. The worker is told again at each heartbeat
// that reports the attempt, so it does not matter if a leader dies, or if a message is
// lost.
//
// A decision is made once, from a report of the open attempt, and never taken back. A user can have another
// trial run to the end what was stopped; of that one the rule decides nothing.
type pruning struct {
	shared
	history *history
	rule    *rule
	curves  *curves
}

// measured adds a report of a program to its trial's curve, and carries out what the rule says of
// it. A repeated report changes nothing: the curve has its step. ask says that the rule leaves it to a model
// whether the trial goes on.
func (l *pruning) measured(m *messaging.Measurement) (t *trial, ask bool) {
	t = l.reporting(m.AttemptID)
	if t == nil || t.forgotten && l.spec.on(safetyRecall) {
		return t, false
	}
	if metrics := finiteMetrics(m.Metrics); metrics != nil {
		keep := append(study.MetricNames(l.spec.Definition.Spec.Objectives()), l.rule.metric)
		if cost := l.spec.Definition.Spec.Cost; cost != nil {
			keep = append(keep, cost.Metric)
		}
		if t.curve != nil && t.curve.Attempt < m.Attempt { // another curve takes its place
			l.trials.noteCost(t)
		}
		if !l.curves.add(t, m, metrics, keep, l.step.now) {
			return t, false
		}
		l.noteEarly(t, metrics)
		l.trials.noteRise(t)
	}
	// The rule is told too of values that a curve cannot hold.
	verdict := l.rule.report(m)
	if t.finishes() && l.spec.on(safetyFinish) {
		return t, false
	}
	if verdict.Stop {
		l.prune(t, m, verdict.Reason, nil, l.likely(verdict.Beside, verdict.Better))
	}
	return t, verdict.Ask
}

// reporting returns the trial of an attempt's reports; nil if they do not count. A
// trial has one curve. It is that of the attempt that answered. Until one has, it is
// that of the latest attempt that has reported anything.
func (l *pruning) reporting(id messaging.AttemptID) *trial {
	t, _ := l.trials.find(id)
	switch {
	case t == nil:
		return nil
	case t.curve != nil && id.Attempt < t.curve.Attempt && l.spec.on(safetyCurve):
		return nil
	case t.rec.State.Terminal():
		for i := range t.rec.Attempts {
			if a := &t.rec.Attempts[i]; a.State == study.AttemptSucceeded && a.Number != id.Attempt {
				return nil
			}
		}
	}
	return t
}

// recalled takes over a curve from the ledger, which the rule is told as well.
func (l *pruning) recalled(number int, c *curve.Curve) {
	if t := l.trials.numbered(number); t != nil && t.forgotten {
		l.curves.recall(t, c, l.step.now)
		l.rule.recount(number, t.curve)
	}
}

// prune decides to stop a trial early, unless that is decided already, or the report
// does not come from the attempt that would be stopped.
func (l *pruning) prune(t *trial, m *messaging.Measurement, reason string, expected *record.Expected, likely study.Values) {
	a := t.rec.Last()
	if t.rec.State.Terminal() || a == nil || a.Number != m.Attempt || a.State != study.AttemptOpen ||
		t.rec.Stopped != nil && l.spec.on(safetyOnce) {
		return
	}
	t.rec.Stopped = &record.Stopped{
		Attempt: a.Number, Step: m.Step, Reason: clip(reason), At: l.step.now,
		Values: l.reachedAll(t, m), Likely: likely, Expected: expected,
	}
	l.keepEarly(t, nil, nil)
	l.step.touch(t)
	l.tellToStop(t, a)
}

// leastBeside is from how many completed trials on it is known how reports relate to values.
const leastBeside = 3

// likely returns the value with which a trial that is stopped early would probably have ended: it stands among the
// values of the completed trials beside it where the trial's report stands among theirs at the same step. Reports may be of
// another metric, or on another scale than the values, so nothing but their order counts. It returns nil while
// too few trials have completed with a report at that step, and if there are several objectives.
func (l *pruning) likely(beside []int, better int) study.Values {
	spec := &l.spec.Definition.Spec
	if len(beside) < leastBeside || len(spec.Several) > 0 {
		return nil
	}
	costs := make([]float64, len(beside))
	for i, number := range beside {
		costs[i] = l.spec.direction().Cost(l.trials.numbered(number).facts().value)
	}
	slices.Sort(costs)
	return study.Values{l.spec.direction().Cost(costs[min(better, len(costs)-1)])}
}

// tellToStop tells the worker of an attempt to stop it early if that is decided. It may be called
// again and again: the first message may be lost, or come before the claim.
func (l *pruning) tellToStop(t *trial, a *record.Attempt) {
	if t.rec.Stopped != nil && a.Worker != "" {
		l.step.out.Cancels = append(l.step.out.Cancels, Cancel{
			Worker: a.Worker, Attempt: l.spec.attemptID(t, a), Reason: t.rec.Stopped.Reason, Prune: true,
		})
	}
}

// pruned ends a trial that was to be stopped early, and reports whether it did. Whoever ends an
// attempt without an answer MUST ask it before anything else: such a trial gets no other attempt,
// however this one ended.
func (l *pruning) pruned(t *trial) bool {
	if t.rec.Stopped == nil || !l.spec.on(safetyPruned) {
		return false
	}
	if t.rec.Values == nil {
		t.rec.Values = t.rec.Stopped.Values
	}
	if t.rec.Times.Ended.IsZero() {
		t.rec.Times.Ended = l.step.now
	}
	l.history.fold(t, study.TrialPruned)
	return true
}
