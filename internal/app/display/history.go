// Package display shows people how a study is going and how it went: live progress,
// a summary, plots of the best value against evaluations, and files of results.
package display

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// History is a study's evaluations in the order in which they ended. Cancelled trials
// are not evaluations.
type History struct {
	// Trials are the numbers of the completed trials and Values their values. Best is
	// the best value up to and including each, and Places are their positions among all
	// evaluations, counted from 1.
	Trials, Places []int
	Values, Best   []float64
	// Failed and Infeasible are the evaluations without a value, Pruned those that were
	// stopped early.
	Failed, Infeasible, Pruned []Ended
	// Evaluations is how many have ended.
	Evaluations int
}

// Ended is an evaluation without a final value: its trial, its position among all
// evaluations, and the reason, "" if unknown.
type Ended struct {
	Trial, Place int
	Reason       string
}

// NewHistory returns the history of a study's ended trials.
func NewHistory(trials []record.Trial, direction study.Direction) History {
	var done []*record.Trial
	for i := range trials {
		if t := &trials[i]; t.State.Terminal() && t.State != study.TrialCancelled {
			done = append(done, t)
		}
	}
	slices.SortStableFunc(done, func(a, b *record.Trial) int { return cmp.Compare(a.Ended, b.Ended) })
	h := History{Evaluations: len(done)}
	for i, t := range done {
		switch {
		case t.State == study.TrialCompleted && len(t.Values) > 0:
			best := t.Values.First()
			if n := len(h.Best); n > 0 && !direction.Better(best, h.Best[n-1]) {
				best = h.Best[n-1]
			}
			h.Trials = append(h.Trials, t.Number)
			h.Places = append(h.Places, i+1)
			h.Values = append(h.Values, t.Values.First())
			h.Best = append(h.Best, best)
		case t.State == study.TrialFailed:
			h.Failed = append(h.Failed, ended(t, i+1))
		case t.State == study.TrialInfeasible:
			h.Infeasible = append(h.Infeasible, ended(t, i+1))
		case t.State == study.TrialPruned:
			h.Pruned = append(h.Pruned, Ended{Trial: t.Number, Place: i + 1, Reason: t.Stopped.Reason})
		}
	}
	return h
}

func ended(t *record.Trial, place int) Ended {
	e := Ended{Trial: t.Number, Place: place}
	if last := t.Last(); last != nil && last.Failure != nil {
		e.Reason = last.Failure.Reason
	}
	return e
}
