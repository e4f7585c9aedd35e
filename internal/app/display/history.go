// Package display shows people how a study is going and how it went: live progress,
// a summary, plots of the best value against evaluations, and files of results.
package display

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// NewHistory returns a picture of a study's ended trials, in the order in which they
// ended. Cancelled trials are not evaluations.
func NewHistory(trials []record.Trial, objective study.Objective) *picture.History {
	var done []*record.Trial
	for i := range trials {
		if t := &trials[i]; t.State.Terminal() && t.State != study.TrialCancelled {
			done = append(done, t)
		}
	}
	slices.SortStableFunc(done, func(a, b *record.Trial) int { return cmp.Compare(a.Ended, b.Ended) })
	h := &picture.History{Objective: picture.Objective{Name: objective.Metric, Maximize: objective.Direction == study.Maximize}, Goal: objective.Goal}
	for i, t := range done {
		e := picture.Evaluation{Trial: t.Number, X: float64(i + 1)}
		switch {
		case t.State == study.TrialCompleted && len(t.Values) > 0:
			e.State, e.Value = picture.Completed, t.Values.First()
		case t.State == study.TrialPruned:
			e.State, e.Reason = picture.Pruned, t.Stopped.Reason
		case t.State == study.TrialInfeasible:
			e.State, e.Reason = picture.Infeasible, reason(t)
		default:
			e.State, e.Reason = picture.Failed, reason(t)
		}
		h.Evaluations = append(h.Evaluations, e)
	}
	return h
}

// reason returns why a trial failed, "" if unknown.
func reason(t *record.Trial) string {
	if last := t.Last(); last != nil && last.Failure != nil {
		return last.Failure.Reason
	}
	return ""
}
