// Package display shows people how a study is going and how it went: live progress,
// a summary, plots of the best value against evaluations, and files of results.
package display

import (
	"cmp"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// History is a study's completed evaluations in the order in which they ended.
type History struct {
	// Trials are the trials' numbers, Values their values, Best the best value
	// up to and including each.
	Trials []int
	Values []float64
	Best   []float64
}

// NewHistory takes the completed trials out of a study's.
func NewHistory(trials []record.Trial, direction study.Direction) History {
	var done []*record.Trial
	for i := range trials {
		if t := &trials[i]; t.State == study.TrialCompleted && t.Value != nil {
			done = append(done, t)
		}
	}
	slices.SortFunc(done, func(a, b *record.Trial) int { return cmp.Compare(a.Ended, b.Ended) })
	better := math.Min
	if direction == study.Maximize {
		better = math.Max
	}
	var h History
	for i, t := range done {
		best := *t.Value
		if i > 0 {
			best = better(best, h.Best[i-1])
		}
		h.Trials = append(h.Trials, t.Number)
		h.Values = append(h.Values, *t.Value)
		h.Best = append(h.Best, best)
	}
	return h
}
