package report

import (
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// Continue takes over what the attempts before have reached, for an attempt that continues from
// their checkpoint: their reports count, and reports without a step are numbered on from theirs. Call
// it before Add.
func (c *Collector) Continue(r *messaging.Reached) {
	for metric, v := range r.Last {
		aim := c.aim(metric)
		if aim < 0 {
			continue
		}
		s, value := c.begin(metric), float64(v)
		s.highest, s.last = r.Steps[metric], value
		if study.Finite(value) {
			s.final, s.finite = value, true
		}
		c.chosen.newest[aim], c.chosen.at[aim] = value, s.highest
		best, counts := r.Best[metric]
		if c.chosen.by < 0 || !counts {
			continue
		}
		c.chosen.values[aim], c.chosen.counts[aim], c.chosen.step = float64(best), true, r.Step
		if aim == c.chosen.by {
			s.best = float64(best)
		}
	}
}

// Reached returns what the trial has reached by the end of an attempt, for the next one to continue.
func (c *Collector) Reached(attempt int) *messaging.Reached {
	r := &messaging.Reached{
		Attempt: attempt, Best: map[string]messaging.Number{}, Step: c.chosen.step,
		Last: map[string]messaging.Number{}, Steps: map[string]int64{},
	}
	for i, o := range c.aims {
		s := c.series[o.Metric]
		if s == nil {
			continue
		}
		r.Last[o.Metric], r.Steps[o.Metric] = messaging.Number(s.last), s.highest
		if c.chosen.by == i || c.chosen.by >= 0 && c.chosen.counts[i] {
			r.Best[o.Metric] = messaging.Number(c.counted(i))
		}
	}
	return r
}
