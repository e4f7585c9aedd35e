package engine

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// # When more trials are not worth it
//
// With budget.stopWhen, the optimiser is asked from time to time, beside its suggestions, what more trials are expected to gain. Its
// answer becomes part of the study's status, so that a next leader has it, and the study ends once even the most that is
// to be expected is no more than the budget names. An edit of the space begins anew.

// forecastEvery is how many trials complete between two forecasts: one costs about as much as a suggestion.
const forecastEvery = 5

// forecasts reports whether the optimiser is to be asked now what more trials are expected to gain.
func (h *history) forecasts() bool {
	completed := h.trials.counts.Completed
	return h.spec.Definition.Spec.Budget.StopWhen.Gain > 0 && h.ladder.rungs == nil && completed >= optimizer.GainCompleted &&
		(h.gain.Completed == 0 || completed-h.gain.Completed >= forecastEvery)
}

// expect keeps what more trials are expected to gain, which the optimiser said once so many had completed. Numbers that cannot be
// a gain count for nothing.
func (h *history) expect(gain *optimizer.Gain, completed int) {
	if gain == nil || !study.Finite(gain.Expected, gain.Most, gain.Seconds, gain.Cost) || gain.Trials <= 0 || gain.Most < 0 ||
		completed < h.gain.Completed {
		return
	}
	h.gain = record.Gain{Gain: *gain, Completed: completed}
	h.step.changed.status = true
}

// worthless says why more trials are not worth it; "" if they are, or if the budget does not say when.
func (h *history) worthless() string {
	spec, g := &h.spec.Definition.Spec, &h.gain
	enough := spec.Budget.StopWhen
	most, worth := g.Worth(enough)
	if worth || !h.spec.on(safetyGain) {
		return ""
	}
	takes := ""
	switch enough.Per {
	case study.PerHour:
		takes = fmt.Sprintf(", and to take %.3g hours together: at most %.3g an hour", g.Seconds/3600, most)
	case study.PerCost:
		takes = fmt.Sprintf(", and to cost %.3g %s together: at most %.3g for each", g.Cost, spec.Cost.Metric, most)
	}
	return fmt.Sprintf("%d more trials are expected to gain %.3g and, in nine of ten cases, at most %.3g%s, which is not more than %g "+
		"(stopWhen.gain)", g.Trials, g.Expected, g.Most, takes, enough.Gain)
}
