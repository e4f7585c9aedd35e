package study

import "math"

// The limits on what a study may learn from.
const (
	MaxEarlier       = 16
	MaxEarlierTrials = 1000 // of all earlier studies together
)

// Earlier is a study that was made before, from whose trials another one learns.
type Earlier struct {
	// Study is its name. If Trials is nil, the coordinator looks for a study of this name when it
	// creates the study, and fills in the rest.
	Study string `json:"study"`
	// Direction is that of its metric; empty is the study's own.
	Direction Direction `json:"direction,omitempty"`
	// Trials are some of its completed trials.
	Trials []EarlierTrial `json:"trials,omitempty"`
}

// EarlierTrial is a completed trial of an earlier study.
type EarlierTrial struct {
	Parameters map[string]any `json:"parameters"`
	// Value is what the objective was, finite.
	Value float64 `json:"value"`
}

// Costs returns the trials' values as costs: lower is better. own is the direction of the study
// that learns from them.
func (e *Earlier) Costs(own Direction) []float64 {
	direction := e.Direction
	if direction == "" {
		direction = own
	}
	costs := make([]float64, len(e.Trials))
	for i, t := range e.Trials {
		costs[i] = min(max(direction.Cost(t.Value), -math.MaxFloat64), math.MaxFloat64)
	}
	return costs
}
