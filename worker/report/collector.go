package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// Limits on what one attempt may report, besides the objectives' metrics. Once maxSteps steps
// of a metric are remembered, only larger steps are taken.
const (
	maxMetrics = 128
	maxSteps   = 4096
)

// Collector collects the reports of one attempt. It is not safe for concurrent use.
type Collector struct {
	objectives []study.Objective
	series     map[string]*series
	unread     []string // why each objective's newest value could not be read; empty if it could
	chosen     chosen
	// Reports counts the reports that were taken, for messages.
	Reports int
}

// series is one metric's reports, reduced to what is needed later.
type series struct {
	steps   map[int64]struct{}
	highest int64
	// last is the newest value, final the newest finite one, best the best one.
	last, final, best float64
	finite            bool
}

// NewCollector returns an empty collector for the objectives of a study.
func NewCollector(objectives []study.Objective) *Collector {
	return &Collector{
		objectives: objectives, series: map[string]*series{}, unread: make([]string, len(objectives)), chosen: newChosen(objectives),
	}
}

// objective returns the index of the objective with a metric, or -1.
func (c *Collector) objective(metric string) int {
	return slices.IndexFunc(c.objectives, func(o study.Objective) bool { return o.Metric == metric })
}

// Taken is what a collector took from a report.
type Taken struct {
	Step int64
	// Metrics are the new values.
	Metrics map[string]float64
	// Ignored explains to people what was not taken: a second value of a metric for a
	// step, or too many metrics.
	Ignored []string
}

// Add takes the metrics of a report. A report without a step gets the highest step of
// its metrics plus one.
func (c *Collector) Add(r Report) Taken {
	t := Taken{Step: c.step(r), Metrics: map[string]float64{}}
	c.notice(r)
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		s, objective := c.series[name], c.objective(name)
		if s == nil {
			if len(c.series) >= maxMetrics && objective < 0 || name == "" || len(name) > MaxName {
				t.Ignored = append(t.Ignored, fmt.Sprintf("metric %q: at most %d metrics with names of 1 to %d bytes are kept", cut(name, 64), maxMetrics, MaxName))
				continue
			}
			s = &series{steps: map[int64]struct{}{}, highest: math.MinInt64, last: math.NaN(), best: math.NaN()}
			c.series[name] = s
		}
		value := r.Metrics[name]
		better := objective >= 0 && (math.IsNaN(s.best) || c.objectives[objective].Direction.Better(value, s.best))
		if !s.takeValue(t.Step, value, better) {
			t.Ignored = append(t.Ignored, fmt.Sprintf("a second value of %q for step %d (report from one process only)", name, t.Step))
			continue
		}
		t.Metrics[name] = value
		if objective >= 0 {
			c.unread[objective] = ""
			c.chosen.take(objective, t.Step, value, better)
		}
	}
	if len(r.Metrics) > len(t.Ignored) {
		c.Reports++
	}
	return t
}

// notice remembers a report that has, or may have had, a value of an objective that cannot be read.
func (c *Collector) notice(r Report) {
	for i := range c.objectives {
		metric := c.objectives[i].Metric
		if text, bad := r.Unreadable[metric]; bad {
			c.unread[i] = fmt.Sprintf("%q is %s, not a number", metric, text)
		} else if text, bad := r.Unreadable[""]; bad && strings.Contains(text, strconv.Quote(metric)) {
			c.unread[i] = fmt.Sprintf("a report with %q cannot be read", metric)
		} else {
			continue
		}
		if r.Origin != "" {
			c.unread[i] += ": " + r.Origin
		}
	}
}

// Unread returns the first objective whose newest value could not be read, and why; why is
// empty if there is none. An older value MUST NOT be taken for it.
func (c *Collector) Unread() (metric, why string) {
	for i, why := range c.unread {
		if why != "" {
			return c.objectives[i].Metric, why
		}
	}
	return "", ""
}

func (c *Collector) step(r Report) int64 {
	if r.Step != nil {
		return *r.Step
	}
	next := int64(0)
	for name := range r.Metrics {
		if s := c.series[name]; s != nil && s.highest >= next && s.highest < math.MaxInt64 {
			next = s.highest + 1
		}
	}
	return next
}

// takeValue records a value and reports whether it is the first for its step. better says that
// it is the best one if it is.
func (s *series) takeValue(step int64, value float64, better bool) bool {
	if step <= s.highest {
		if _, seen := s.steps[step]; seen || len(s.steps) >= maxSteps {
			return false
		}
	}
	if len(s.steps) < maxSteps {
		s.steps[step] = struct{}{}
	}
	s.highest = max(s.highest, step)
	s.last = value
	if Finite(value) {
		s.final, s.finite = value, true
	}
	if better {
		s.best = value
	}
	return true
}

// Finite reports whether v is neither NaN nor infinite.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Split returns the finite metrics, and the names of the others in alphabetical order.
func Split(metrics map[string]float64) (finite map[string]float64, diverged []string) {
	finite = make(map[string]float64, len(metrics))
	for name, v := range metrics {
		if Finite(v) {
			finite[name] = v
		} else {
			diverged = append(diverged, name)
		}
	}
	slices.Sort(diverged)
	return finite, diverged
}

// Values returns the objectives' values according to their Take, or the first metric that was
// not reported. A value that is not finite means that the evaluation diverged.
func (c *Collector) Values() (values study.Values, missing string) {
	for i, o := range c.objectives {
		s := c.series[o.Metric]
		switch {
		case s == nil:
			return nil, o.Metric
		case c.chosen.by < 0:
			values = append(values, s.last)
		case c.chosen.by == i:
			values = append(values, s.best)
		default:
			values = append(values, c.chosen.values[i])
		}
	}
	return values, ""
}

// Final returns the newest finite value of every metric.
func (c *Collector) Final() map[string]float64 {
	final := make(map[string]float64, len(c.series))
	for name, s := range c.series {
		if s.finite {
			final[name] = s.final
		}
	}
	return final
}

// Names returns the metrics that were reported, in alphabetical order.
func (c *Collector) Names() []string { return slices.Sorted(maps.Keys(c.series)) }
