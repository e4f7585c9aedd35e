package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// filterForm is the form that sets a filter. It works without the script.
type filterForm struct {
	States  []option
	Sources []option
	Value   string
	Worker  string
	Top     string
	ByTime  bool
	// Objectives are those of which pictures can show one; nil for a single one.
	Objectives []option
	Params     []formParam
	Sort       string
	Narrows    bool
	Clear      string
	Summary    string
}

// option is a choice of the form.
type option struct {
	Value, Text string
	Set         bool
}

// formParam is the field of a parameter: a range, or choices.
type formParam struct {
	Name, Range, Hint string
	Choices           []option
}

// maxChoices bounds the choices of a parameter that the form lists.
const maxChoices = 40

func newFilterForm(q *request) *filterForm {
	f := q.filter
	form := &filterForm{
		Value: f.value.String(), Worker: f.worker, ByTime: f.byTime,
		Narrows: f.narrows(), Sort: f.order(),
		Clear: "?", Summary: f.summary(q.Spec.FirstObjective().Metric),
	}
	if f.top > 0 {
		form.Top = strconv.Itoa(f.top)
	}
	for _, name := range study.MetricNames(q.study.Spec.Definition.Spec.Several) {
		form.Objectives = append(form.Objectives, option{name, name, name == q.Spec.FirstObjective().Metric})
	}
	for _, s := range states {
		form.States = append(form.States, option{string(s), figure.StateText(s), slices.Contains(f.states, s)})
	}
	for _, s := range sources {
		form.Sources = append(form.Sources, option{string(s), string(s), slices.Contains(f.sources, s)})
	}
	for i := range f.axes {
		p := &f.axes[i]
		c := f.params[i]
		field := formParam{Name: p.Name}
		if figure.Numeric(p) {
			field.Range = c.limits.String()
			field.Hint = fmt.Sprintf("%g..%g", *p.Min, *p.Max)
		} else if levels := figure.Levels(p); len(levels) <= maxChoices {
			for k, v := range levels {
				field.Choices = append(field.Choices, option{v, v, slices.Contains(c.among, k)})
			}
		}
		form.Params = append(form.Params, field)
	}
	return form
}

// summary says in words which trials the filter shows.
func (f *filter) summary(metric string) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if f.top > 0 {
		add("the best %d", f.top)
	}
	if len(f.states) > 0 {
		add("%s", each.Join(f.states, " or ", figure.StateText))
	}
	if len(f.sources) > 0 {
		add("from %s", each.Join(f.sources, " or ", text))
	}
	if f.worker != "" {
		add("on %s", f.worker)
	}
	if f.value.set() {
		add("%s %s", metric, f.value.words())
	}
	for i, c := range f.params {
		p := &f.axes[i]
		switch {
		case c.limits.set():
			add("%s %s", p.Name, c.limits.words())
		case len(c.among) > 0:
			add("%s %s", p.Name, each.Join(c.among, " or ", func(k int) string { return study.Format(p.At(k)) }))
		}
	}
	return strings.Join(parts, ", ")
}

// words is a range in words.
func (l limits) words() string {
	switch {
	case math.IsNaN(l.low):
		return fmt.Sprintf("at most %g", l.high)
	case math.IsNaN(l.high):
		return fmt.Sprintf("at least %g", l.low)
	}
	return fmt.Sprintf("from %g to %g", l.low, l.high)
}
