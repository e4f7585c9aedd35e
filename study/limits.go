package study

import (
	"math"
	"slices"
)

// MaxLimits is the largest number of limits of a study.
const MaxLimits = 16

// Limit bounds a metric of a trial. Only trials within all limits of their study can be its
// best or on its front. Exactly one of Max and Min is set; both are inclusive.
type Limit struct {
	Metric string   `json:"metric"`
	Max    *float64 `json:"max,omitempty"`
	Min    *float64 `json:"min,omitempty"`
	// Early says that a value which is reported before a trial ends is the final one, so that it
	// also counts of a trial that is stopped early or fails.
	Early bool `json:"early,omitempty"`
}

// Excess returns by how much a value is outside of the limit, in the metric's unit: 0 or less
// within it, and NaN for a value that is not finite.
func (l Limit) Excess(value float64) float64 {
	switch {
	case math.IsInf(value, 0):
		return math.NaN()
	case l.Max != nil:
		return bounded(value, *l.Max)
	case l.Min != nil:
		return bounded(*l.Min, value)
	default:
		return math.NaN()
	}
}

// Bound returns the limit's bound.
func (l Limit) Bound() float64 {
	if l.Max != nil {
		return *l.Max
	}
	return *l.Min
}

// At returns the value that has an excess.
func (l Limit) At(excess float64) float64 {
	if l.Max != nil {
		return *l.Max + excess
	}
	return *l.Min - excess
}

// bounded returns a−b, which is finite for finite numbers.
func bounded(a, b float64) float64 {
	return min(max(a-b, -math.MaxFloat64), math.MaxFloat64)
}

// String returns the limit as people write it, such as "memory_mb <= 512".
func (l Limit) String() string {
	if l.Max != nil {
		return l.Metric + " <= " + Format(*l.Max)
	}
	if l.Min != nil {
		return l.Metric + " >= " + Format(*l.Min)
	}
	return l.Metric
}

// LimitMetrics returns the metrics of the study's limits that are no objective's, in order and
// without repeats.
func (s *Spec) LimitMetrics() []string {
	known := MetricNames(s.Objectives())
	objectives := len(known)
	for i := range s.Limits {
		if !slices.Contains(known, s.Limits[i].Metric) {
			known = append(known, s.Limits[i].Metric)
		}
	}
	return known[objectives:]
}

// Excess returns by how much a completed trial is outside of each of the study's limits: see
// Limit.Excess. The value of a metric that was not reported is not known, so its excess is NaN.
// It returns nil if there are no limits.
func (s *Spec) Excess(values Values, metrics map[string]float64) []float64 {
	if len(s.Limits) == 0 {
		return nil
	}
	excess := make([]float64, len(s.Limits))
	for i := range s.Limits {
		l := &s.Limits[i]
		value, ok := metrics[l.Metric]
		objectives := s.Objectives()
		// The report that counts for an objective may be another one than the last.
		if k := slices.IndexFunc(objectives, func(o Objective) bool { return o.Metric == l.Metric }); k >= 0 && k < len(values) {
			value, ok = values[k], true
		}
		if excess[i] = l.Excess(value); !ok {
			excess[i] = math.NaN()
		}
	}
	return excess
}

// Within reports whether an excess over all limits is within them. A trial whose value of a
// limit's metric is not known or not finite is not.
func Within(excess []float64) bool {
	return !slices.ContainsFunc(excess, func(e float64) bool { return !(e <= 0) })
}

// Within reports whether a completed trial is within all of the study's limits.
func (s *Spec) Within(values Values, metrics map[string]float64) bool {
	return Within(s.Excess(values, metrics))
}
