package study

import (
	"math"
	"slices"
)

// EarlyMetrics returns the metrics of objectives and limits whose values are known early, without
// repeats.
func (s *Spec) EarlyMetrics() (metrics []string) {
	for i := range s.Several {
		if s.Several[i].Early {
			metrics = append(metrics, s.Several[i].Metric)
		}
	}
	for i := range s.Limits {
		if s.Limits[i].Early && !slices.Contains(metrics, s.Limits[i].Metric) {
			metrics = append(metrics, s.Limits[i].Metric)
		}
	}
	return metrics
}

// EarlyValues returns those values of several objectives that are known of a trial which did not
// complete, in the order of the objectives. The others are NaN. It returns nil if none is known.
func (s *Spec) EarlyValues(metrics map[string]float64) Values {
	var values Values
	for i := range s.Several {
		value, ok := metrics[s.Several[i].Metric]
		if !ok || !s.Several[i].Early {
			continue
		}
		if values == nil {
			values = Values(slices.Repeat([]float64{math.NaN()}, len(s.Several)))
		}
		values[i] = value
	}
	return values
}

// EarlyExcess is Excess for a trial that did not complete: only limits whose metrics are known
// early have one. It returns nil if none has.
func (s *Spec) EarlyExcess(metrics map[string]float64) []float64 {
	var excess []float64
	for i := range s.Limits {
		value, ok := metrics[s.Limits[i].Metric]
		if !ok || !s.Limits[i].Early {
			continue
		}
		if excess == nil {
			excess = slices.Repeat([]float64{math.NaN()}, len(s.Limits))
		}
		excess[i] = s.Limits[i].Excess(value)
	}
	return excess
}
