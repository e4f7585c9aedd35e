package optimizer

import (
	"context"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// GainTrials is how many more trials a Gain is of, and GainCompleted how many completed ones it needs.
const (
	GainTrials    = 30
	GainCompleted = 24
)

// Gain is what more trials are expected to improve the best point by, in the objective's unit. It is not negative.
type Gain struct {
	// Trials is how many more trials.
	Trials   int     `json:"trials"`
	Expected float64 `json:"expected"`
	// Most is what about nine in ten studies do not gain more than.
	Most float64 `json:"most"`
	// Seconds is how long those trials take, added up, and Cost what they cost, if the study has a cost: by the mean of as many that
	// ended last. 0 is not known.
	Seconds float64 `json:"seconds,omitempty"`
	Cost    float64 `json:"cost,omitempty"`
}

// Price sets Seconds and Cost by the evaluations that ended last.
func (g *Gain) Price(observations []Observation) {
	mean := func(of func(*Observation) float64) float64 {
		sum, n := 0.0, 0
		for _, o := range slices.Backward(observations) {
			if v := of(&o); v > 0 && n < g.Trials {
				sum, n = sum+v, n+1
			}
		}
		return sum / float64(max(n, 1))
	}
	g.Seconds = float64(g.Trials) * mean(func(o *Observation) float64 { return o.Seconds })
	g.Cost = float64(g.Trials) * mean(func(o *Observation) float64 { return o.Cost })
}

// MostPer returns Most for an hour of trials or a unit of their cost; ok is false if what they take is not known.
func (g *Gain) MostPer(per study.Per) (most float64, ok bool) {
	units := 1.0
	switch per {
	case study.PerHour:
		units = g.Seconds / 3600
	case study.PerCost:
		units = g.Cost
	}
	if most = g.Most / units; !(units > 0) || !study.Finite(most) {
		return 0, false
	}
	return most, true
}

// Forecaster is implemented by an Optimizer with a model that says what more trials are worth.
type Forecaster interface {
	// Forecast returns what GainTrials more trials are expected to gain. It is nil where that is not known: with several
	// objectives or limits, with fewer than GainCompleted completed trials, and where hardly any other point is left. State is the
	// study's last one, as for Suggest. The same arguments give the same answer. If ctx ends, Forecast returns its error.
	// It is safe for concurrent use.
	Forecast(ctx context.Context, p *Problem, state State) (*Gain, error)
}
