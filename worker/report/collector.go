package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// Limits on what one attempt may report, besides the metrics of the objectives and of the
// study's limits. Once maxSteps steps
// of a metric are remembered, only larger steps are taken.
const (
	maxMetrics = 128
	maxSteps   = 4096
)

// Collector collects the reports of one attempt. It is not safe for concurrent use.
type Collector struct {
	aims   []study.Objective // the objectives, then the other metrics that the study's limits bound
	first  int               // how many objectives there are
	series map[string]*series
	unread []string // why each aim's newest value could not be read; empty if it could
	chosen chosen
	// Reports counts the reports that were taken, for messages.
	Reports int
}

// series is one metric's reports, reduced to what is needed later.
type series struct {
	steps   map[int64]struct{}
	highest int64 // of all attempts
	own     int64 // of this attempt
	// last is the newest value, final the newest finite one, best the best one.
	last, final, best float64
	finite            bool
}

// NewCollector returns an empty collector for the objectives of a study, and for the other
// metrics that its limits bound. One report counts for all of them.
func NewCollector(objectives []study.Objective, limited ...string) *Collector {
	aims := slices.Clone(objectives)
	for _, metric := range limited {
		aims = append(aims, study.Objective{Metric: metric, Direction: study.Minimize, Take: study.TakeLast})
	}
	return &Collector{
		aims: aims, first: len(objectives), series: map[string]*series{}, unread: make([]string, len(aims)), chosen: newChosen(aims),
	}
}

// aim returns the index of the objective or the limited metric with a name, or -1.
func (c *Collector) aim(metric string) int {
	return slices.IndexFunc(c.aims, func(o study.Objective) bool { return o.Metric == metric })
}

// Taken is what a collector took from a report.
type Taken struct {
	Step int64
	// Metrics are the new values.
	Metrics map[string]float64
	// Ignored explains to people what was not taken: a second value of a metric for a
	// step, or too many metrics.
	Ignored []string
	// Late explains which of Metrics are not in the trial's curve, since their step does not grow.
	Late []string
	// Warning is what a person should know of the report: a value was left out that differs from the one
	// that was taken, or its step does not grow. Empty for nothing.
	Warning string
}

// Add takes the metrics of a report. A report without a step gets the highest step of
// its metrics plus one.
func (c *Collector) Add(r Report) Taken {
	t := Taken{Step: c.step(r), Metrics: map[string]float64{}}
	c.notice(r)
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		s, aim := c.series[name], c.aim(name)
		if s == nil {
			if len(c.series) >= maxMetrics && aim < 0 || name == "" || len(name) > MaxName {
				t.Ignored = append(t.Ignored, fmt.Sprintf("metric %q: at most %d metrics with names of 1 to %d bytes are kept",
					cut(name, 64), maxMetrics, MaxName))
				continue
			}
			s = c.begin(name)
		}
		value := r.Metrics[name]
		better := aim >= 0 && (math.IsNaN(s.best) || c.aims[aim].Direction.Better(value, s.best))
		own, last, again := s.own, s.last, t.Step == s.own
		if !s.addValue(t.Step, value, better) {
			t.Ignored = append(t.Ignored, fmt.Sprintf("a second value of %q for step %d (report from one process only)", name, t.Step))
			if !again || value != last && !math.IsNaN(value+last) { // else it may have been sent again
				t.Warning = fmt.Sprintf("steps must grow: a second value of %q for step %d was left out", name, t.Step)
			}
			continue
		}
		if t.Step < own {
			t.Late = append(t.Late, fmt.Sprintf("steps must grow: step %d of %q came after step %d, and is not in the trial's curve",
				t.Step, name, own))
			t.Warning = cmp.Or(t.Warning, t.Late[0])
		}
		t.Metrics[name] = value
		if aim >= 0 {
			c.unread[aim] = ""
			c.chosen.add(aim, t.Step, value, better)
		}
	}
	if len(r.Metrics) > len(t.Ignored) {
		c.Reports++
	}
	return t
}

// begin makes the series of a metric.
func (c *Collector) begin(metric string) *series {
	s := &series{steps: map[int64]struct{}{}, highest: math.MinInt64, own: math.MinInt64, last: math.NaN(), best: math.NaN()}
	c.series[metric] = s
	return s
}

// notice remembers a report that has, or may have had, a value of an objective or of a limited
// metric that cannot be read.
func (c *Collector) notice(r Report) {
	for i := range c.aims {
		metric := c.aims[i].Metric
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
		c.unread[i] += r.Hint
	}
}

// Unread returns the first objective or limited metric whose newest value could not be read,
// and why; why is empty if there is none. An older value MUST NOT be taken for it.
func (c *Collector) Unread() (metric, why string) {
	for i, why := range c.unread {
		if why != "" {
			return c.aims[i].Metric, why
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

// addValue records a value and reports whether it is the first for its step. better says that
// it is the best one if it is.
func (s *series) addValue(step int64, value float64, better bool) bool {
	if step <= s.highest {
		if _, seen := s.steps[step]; seen || len(s.steps) >= maxSteps {
			return false
		}
	}
	if len(s.steps) < maxSteps {
		s.steps[step] = struct{}{}
	}
	s.highest, s.own = max(s.highest, step), max(s.own, step)
	s.last = value
	if study.Finite(value) {
		s.final, s.finite = value, true
	}
	if better {
		s.best = value
	}
	return true
}

// Split returns the finite metrics, and the names of the others in alphabetical order.
func Split(metrics map[string]float64) (finite map[string]float64, diverged []string) {
	finite = make(map[string]float64, len(metrics))
	for name, v := range metrics {
		if study.Finite(v) {
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
	for i, o := range c.aims[:c.first] {
		if c.series[o.Metric] == nil {
			return nil, o.Metric
		}
		values = append(values, c.counted(i))
	}
	return values, ""
}

// counted returns the value of an aim that was reported in the report that counts.
func (c *Collector) counted(aim int) float64 {
	s := c.series[c.aims[aim].Metric]
	switch {
	case c.chosen.by < 0:
		return s.last
	case c.chosen.by == aim:
		return s.best
	default:
		return c.chosen.values[aim]
	}
}

// Missing returns the first objective's or limited metric that was not reported; "" if there is
// none.
func (c *Collector) Missing() string {
	for _, o := range c.aims {
		if c.series[o.Metric] == nil {
			return o.Metric
		}
	}
	return ""
}

// Limited returns the limited metrics.
func (c *Collector) Limited() []string { return study.MetricNames(c.aims[c.first:]) }

// Final returns the newest finite value of every metric. Of a limited metric it returns the
// value in the report that counts, and nothing if that is not finite.
func (c *Collector) Final() map[string]float64 {
	final := make(map[string]float64, len(c.series))
	for name, s := range c.series {
		if s.finite {
			final[name] = s.final
		}
	}
	for i, o := range c.aims[c.first:] {
		if c.series[o.Metric] == nil {
			continue
		}
		if value := c.counted(c.first + i); study.Finite(value) {
			final[o.Metric] = value
		} else {
			delete(final, o.Metric)
		}
	}
	return final
}

// Names returns the metrics that were reported, in alphabetical order.
func (c *Collector) Names() []string { return slices.Sorted(maps.Keys(c.series)) }
