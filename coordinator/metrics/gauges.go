package metrics

import "time"

// Gauges are the values of the leader's gauges at one time.
type Gauges struct {
	At time.Time
	// Pending counts the open trials of running studies, and Studies these studies.
	Pending, Studies int64
	Pools            map[string]Slots
	// Best and Recommended are, by study, the best value and the posterior mean at
	// the recommended point.
	Best, Recommended map[string]float64
}

// Slots are those of a pool: all that its workers have, those that are free, and those that the
// running studies could use.
type Slots struct {
	All, Free, Workers, Useful int64
	Idle                       float64 // seconds that slots were free, since the term began
}
