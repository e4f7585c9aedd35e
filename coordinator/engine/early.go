package engine

import "github.com/fantasia-hpo/fantasia/study"

// # Metrics that are known early
//
// Some metrics are known before a trial ends, such as a model's size: the study file says which.
// The record of a trial that is stopped early or fails keeps their values. So the optimiser learns
// from it how far the trial was within a limit, or what an objective's value was.

// keepEarly makes kept the metrics of a trial that has not completed, with those that are known
// early: as an attempt has reported them at its end, otherwise by the trial's curve, otherwise from
// an earlier attempt. It may change kept. The caller MUST touch the trial.
func (l *pruning) keepEarly(t *trial, kept, reported map[string]float64) {
	for _, metric := range l.spec.Definition.Spec.EarlyMetrics() {
		value, ok := reported[metric]
		if !ok || !study.Finite(value) {
			value, ok = t.curve.last(metric)
		}
		if !ok {
			value, ok = t.rec.Metrics[metric]
		}
		if ok && kept == nil {
			kept = map[string]float64{}
		}
		if ok {
			kept[metric] = value
		}
	}
	t.rec.Metrics = kept
}

// noteEarly stores a first report of a metric that is known early in the record of a trial that is
// being evaluated, since the next leader may not have the curve when the trial fails.
func (l *pruning) noteEarly(t *trial, reported map[string]float64) {
	if t.rec.State.Terminal() {
		return
	}
	for _, metric := range l.spec.Definition.Spec.EarlyMetrics() {
		if _, new := reported[metric]; !new {
			continue
		}
		if _, known := t.rec.Metrics[metric]; !known {
			l.keepEarly(t, nil, nil)
			l.step.touch(t)
			return
		}
	}
}

// last returns the newest value of a metric; false if it was not reported. The curve may be nil.
func (c *recent) last(metric string) (value float64, ok bool) {
	if c == nil {
		return 0, false
	}
	for _, s := range c.Series() {
		if s.Metric == metric {
			return s.Points[len(s.Points)-1].Value, true
		}
	}
	return 0, false
}
