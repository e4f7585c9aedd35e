package engine

import (
	"fmt"
	"math"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// # What trials cost
//
// A study may have a cost that is not time, such as dollars. Its programs report what their run has cost so far. The record of
// an attempt keeps the largest of these reports: once it ends, and from time to time while it runs. A trial has cost what its
// attempts have cost together. If none of them has reported anything, it counts with what was expected of it.
//
// A budget of cost allows another trial while what the ended trials have cost, with what is expected of those that run, is less
// than the budget. So each trial is begun while less than the budget has been spent, and at most one trial of each slot ends after
// it has been. What is expected of a trial is what a model said when it was made or, without one, the mean of those that have
// ended. A trial that has been begun keeps its retries.
//
// All of it follows from the trials' records, in the order in which they ended.

const (
	// noteAgain is by which factor the reported cost of an open attempt grows until it is stored again. As much of it is missing if a
	// leader dies and the worker as well.
	noteAgain = 1.25
	// mostSilent is how many trials may end without any cost, beside firstFailures completed ones, in a study with a budget of cost.
	mostSilent = 30
)

// spending is what the ended trials have cost.
type spending struct {
	spent float64
	all   tally
	rungs map[int]tally // by the level of the fidelity
	// silent is how many evaluations have ended without a report of their cost, completed how many of them have completed.
	silent, completed int
}

// tally sums costs that were reported.
type tally struct {
	sum float64
	n   int
}

func (c tally) with(cost float64) tally { return tally{c.sum + cost, c.n + 1} }

// mean returns the mean cost of the ended trials at a level of the fidelity or, if there is none, of all; 0 if nothing is known.
func (s *spending) mean(rung int) float64 {
	of := s.rungs[rung]
	if of.n == 0 {
		of = s.all
	}
	return of.sum / float64(max(1, of.n))
}

// spend counts a trial that has ended. The order of its calls MUST be that in which the trials ended, so that each leader has
// the same sum.
func (l *trials) spend(t *trial) {
	if l.spec.Definition.Spec.Cost == nil || t.rec.Source == optimizer.SourceAdded {
		return
	}
	s := &l.spending
	cost, reported := t.rec.Cost()
	s.spent += cost
	switch {
	case t.rec.State == study.TrialCancelled:
	case reported:
		if s.rungs == nil {
			s.rungs = map[int]tally{}
		}
		s.all, s.rungs[t.rec.Rung] = s.all.with(cost), s.rungs[t.rec.Rung].with(cost)
	case begun(&t.rec):
		s.silent++
		if t.rec.State == study.TrialCompleted {
			s.completed++
		}
	}
}

// begun reports whether anybody has evaluated a trial, or has said so.
func begun(t *record.Trial) bool {
	for i := range t.Attempts {
		if t.Attempts[i].Worker != "" {
			return true
		}
	}
	return false
}

// completeCost completes the record of a trial that is about to end with what it has cost.
func (l *trials) completeCost(t *trial) {
	if l.spec.Definition.Spec.Cost == nil {
		return
	}
	l.noteCost(t)
	if _, reported := t.rec.Cost(); reported {
		return
	}
	if !begun(&t.rec) {
		t.rec.Expected = 0
		return
	}
	t.rec.Expected = l.expect(&t.rec)
}

// expect returns what a trial is expected to cost in all.
func (l *trials) expect(t *record.Trial) float64 {
	expected := t.Expected
	if expected == 0 {
		expected = l.spending.mean(t.Rung)
	}
	if cost, reported := t.Cost(); reported {
		expected = max(expected, cost)
	}
	return expected
}

// committed returns what has been spent, with what is expected of the trials that have been handed out.
func (l *trials) committed() float64 {
	sum := l.spending.spent
	for t := range l.handedOut() {
		sum += l.expect(&t.rec)
	}
	return sum
}

// unspent returns what is left of the budget of cost, which is not 0.
func (l *trials) unspent() float64 {
	return max(0, l.spec.Definition.Spec.Budget.MaxCost-l.committed())
}

// affordable returns how many more trials the budget of cost allows to begin now, if each of them costs the mean.
func (l *trials) affordable() int {
	most := l.spec.Definition.Spec.Budget.MaxCost
	if most <= 0 || !l.spec.on(safetyCost) {
		return math.MaxInt
	}
	left := most - l.committed()
	if left <= 0 {
		return 0
	}
	return max(1, int(min(math.Ceil(left/l.spending.mean(0)), mostExpected)))
}

// unpriced reports whether nothing would end a study by its budget of cost, since no program reports any.
func (l *trials) unpriced() bool {
	s := &l.spending
	return l.spec.Definition.Spec.Budget.MaxCost > 0 && s.all.n == 0 && (s.completed >= firstFailures || s.silent >= mostSilent)
}

// note keeps the cost of an attempt as it was reported, and says whether that has changed it. A cost that is none does not count.
func (l *trials) note(a *record.Attempt, metrics map[string]float64) bool {
	metric := l.spec.Definition.Spec.Cost
	if metric == nil {
		return false
	}
	cost, ok := metrics[metric.Metric]
	if !ok || !isCost(cost) || a.Cost != nil && *a.Cost >= cost {
		return false
	}
	a.Cost = &cost
	return true
}

// isCost reports whether a number can be a cost.
func isCost(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// reportedCost returns the attempt of a trial's curve, and the cost that it has reported last; false if that is not known.
func (l *trials) reportedCost(t *trial) (a *record.Attempt, cost float64, ok bool) {
	metric := l.spec.Definition.Spec.Cost
	if metric == nil || t.curve == nil || t.work == nil || t.rec.State.Terminal() || t.curve.Attempt > len(t.rec.Attempts) {
		return nil, 0, false
	}
	cost, ok = t.curve.last(metric.Metric)
	return &t.rec.Attempts[t.curve.Attempt-1], cost, ok
}

// noteCost keeps the last cost of a trial's curve in the record of its attempt.
func (l *trials) noteCost(t *trial) {
	if a, cost, ok := l.reportedCost(t); ok && l.note(a, map[string]float64{l.spec.Definition.Spec.Cost.Metric: cost}) {
		l.step.touch(t)
	}
}

// noteRise does so if it is the first one, or much more than the record has.
func (l *trials) noteRise(t *trial) {
	if a, cost, ok := l.reportedCost(t); ok && (a.Cost == nil || cost > noteAgain**a.Cost) {
		l.noteCost(t)
	}
}

// priced returns what a suggestion is expected to cost, as records have it.
func priced(cost float64) float64 {
	if !isCost(cost) {
		return 0
	}
	return cost
}

// withCost returns what went wrong with an attempt, together with what is wrong with its cost. That never changes how the attempt
// has ended. completed says that it has a value.
func (l *results) withCost(
	t *trial, a *record.Attempt, r *messaging.Result, failure *messaging.Failure, completed bool,
) *messaging.Failure {
	metric := l.spec.Definition.Spec.Cost
	if metric == nil {
		return failure
	}
	var wrong string
	cost, has := r.Metrics[metric.Metric]
	switch {
	case has && !isCost(cost):
		wrong = fmt.Sprintf("the program reported %s %v, and a cost (cost.metric) is a finite number from 0 on", metric.Metric, cost)
	case a.Cost == nil && completed:
		wrong = fmt.Sprintf("the program did not report %s (cost.metric) as a finite number", metric.Metric)
	default:
		return failure
	}
	if counts, reported := t.rec.Cost(); reported {
		wrong += fmt.Sprintf(": the trial counts with %v, which was reported before", counts)
	} else {
		wrong += ": the trial counts with what was expected of it"
	}
	if failure == nil && completed {
		return &messaging.Failure{Reason: messaging.ReasonReports, Message: "warning: " + wrong}
	}
	if failure == nil {
		return nil
	}
	both := *failure
	both.Message = clip(strings.TrimPrefix(both.Message+"; "+wrong, "; "))
	return &both
}

// observedCost returns what the optimiser is told that a trial has cost; 0 if that is not known.
func observedCost(spec *study.Spec, t *record.Trial) float64 {
	if spec.Cost == nil {
		return 0
	}
	cost, reported := t.Cost()
	if t.Source == optimizer.SourceAdded {
		cost, reported = t.Metrics[spec.Cost.Metric]
	}
	if !reported || !isCost(cost) {
		return 0
	}
	return cost
}
