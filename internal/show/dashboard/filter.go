package dashboard

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// filter is what a study's pages show, as their URL says it. All pictures and the table
// of a page share it.
type filter struct {
	axes figure.Axes
	// states and sources are those shown; all if empty.
	states  []study.TrialState
	sources []optimizer.Source
	worker  string
	// value and params are ranges; params also lists the choices of a parameter.
	value  limits
	params []choice
	// top shows only that many best trials; 0 shows all.
	top int
	// byTime places trials by when they ended.
	byTime bool
	// objective is the metric that pictures of one objective show, of several; "" is the first.
	objective string
	// sort is the column by which the table is sorted; desc reverses it.
	sort string
	desc bool
	page int
}

// limits is a range; NaN stands for no limit.
type limits struct{ low, high float64 }

var unlimited = limits{math.NaN(), math.NaN()}

func (l limits) set() bool { return !math.IsNaN(l.low) || !math.IsNaN(l.high) }

func (l limits) has(v float64) bool { return !(v < l.low) && !(v > l.high) && !math.IsNaN(v) }

// String is the range as the URL has it.
func (l limits) String() string {
	if !l.set() {
		return ""
	}
	end := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return end(l.low) + ".." + end(l.high)
}

// choice limits a parameter.
type choice struct {
	limits limits
	// among are the numbers of the choices shown; all if empty.
	among []int
}

func (c choice) set() bool { return c.limits.set() || len(c.among) > 0 }

func (c choice) has(v float64) bool {
	if len(c.among) > 0 {
		return !math.IsNaN(v) && slices.Contains(c.among, int(v))
	}
	return !c.limits.set() || c.limits.has(v)
}

// states are the states by which trials can be filtered.
var states = []study.TrialState{
	study.TrialRunning, study.TrialQueued, study.TrialPending, study.TrialCompleted,
	study.TrialPruned, study.TrialFailed, study.TrialInfeasible, study.TrialCancelled,
}

// sources are the sources by which trials can be filtered.
var sources = []optimizer.Source{
	optimizer.SourceModel, optimizer.SourceDesign, optimizer.SourceInitial, optimizer.SourceRandom, optimizer.SourceFallback,
	optimizer.SourcePromoted, optimizer.SourceRequested,
}

// readFilter reads the query of a URL. Its error says what is wrong.
func readFilter(a figure.Axes, q url.Values) (*filter, error) {
	f := &filter{axes: a, params: make([]choice, len(a)), value: unlimited, worker: q.Get("worker"), sort: "trial", desc: true, page: 1}
	var err error
	if f.states, err = among("state", q["state"], states); err != nil {
		return nil, err
	}
	if f.sources, err = among("source", q["source"], sources); err != nil {
		return nil, err
	}
	if f.value, err = readLimits("value", q.Get("value")); err != nil {
		return nil, err
	}
	for i := range a {
		if f.params[i], err = readChoice(&a[i], q["p."+a[i].Name]); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*int{"top": &f.top, "page": &f.page} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		if *to, err = strconv.Atoi(text); err != nil || *to < 1 {
			return nil, badRequest("%s is %q; want a whole number from 1 on", name, text)
		}
	}
	f.byTime, f.objective = q.Get("x") == "time", q.Get("objective")
	if s := q.Get("sort"); s != "" {
		f.sort, f.desc = strings.CutPrefix(s, "-")
		if !slices.ContainsFunc(f.columns(make([]string, study.MaxObjectives), 0), func(c column) bool { return c.key == f.sort }) {
			return nil, badRequest("sort is %q; want a column of the table, such as value or -value", s)
		}
	}
	return f, nil
}

// among reads values that must be known; empty ones are left out.
func among[T ~string](name string, given []string, known []T) (list []T, err error) {
	for _, s := range given {
		switch {
		case s == "":
		case !slices.Contains(known, T(s)):
			return nil, badRequest("%s is %q; want one of %s", name, s, each.Join(known, ", ", text[T]))
		default:
			list = append(list, T(s))
		}
	}
	return list, nil
}

func text[T ~string](v T) string { return string(v) }

func readLimits(name, text string) (limits, error) {
	l := unlimited
	if text == "" {
		return l, nil
	}
	low, high, ok := strings.Cut(text, "..")
	if !ok {
		return l, badRequest("%s is %q; want a range such as 0.1..5, 0.1.. or ..5", name, text)
	}
	for _, end := range []struct {
		text string
		to   *float64
	}{{low, &l.low}, {high, &l.high}} {
		if end.text = strings.TrimSpace(end.text); end.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(end.text, 64)
		if err != nil || math.IsNaN(v) {
			return l, badRequest("%s is %q; want a range such as 0.1..5, 0.1.. or ..5", name, text)
		}
		*end.to = v
	}
	if l.low > l.high {
		return l, badRequest("%s is %q; the first number must not be greater than the second", name, text)
	}
	return l, nil
}

func readChoice(p *study.Parameter, given []string) (c choice, err error) {
	c.limits = unlimited
	for _, text := range given {
		if text == "" {
			continue
		}
		if figure.Numeric(p) {
			c.limits, err = readLimits("p."+p.Name, text)
			return c, err
		}
		k := slices.Index(figure.Levels(p), text)
		if k < 0 {
			return c, badRequest("p.%s is %q; want one of its values", p.Name, text)
		}
		c.among = append(c.among, k)
	}
	return c, nil
}

// query returns the filter as a URL's query; it leaves out what is as by default.
func (f *filter) query() url.Values {
	q := url.Values{}
	for _, s := range f.states {
		q.Add("state", string(s))
	}
	for _, s := range f.sources {
		q.Add("source", string(s))
	}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	set("worker", f.worker)
	set("value", f.value.String())
	for i, c := range f.params {
		p := &f.axes[i]
		set("p."+p.Name, c.limits.String())
		for _, k := range c.among {
			q.Add("p."+p.Name, study.Format(p.At(k)))
		}
	}
	if f.top > 0 {
		q.Set("top", strconv.Itoa(f.top))
	}
	if f.byTime {
		q.Set("x", "time")
	}
	set("objective", f.objective)
	if s := f.order(); s != "-trial" {
		q.Set("sort", s)
	}
	if f.page > 1 {
		q.Set("page", strconv.Itoa(f.page))
	}
	return q
}

func (f *filter) order() string {
	if f.desc {
		return "-" + f.sort
	}
	return f.sort
}

// narrows reports whether the filter hides trials.
func (f *filter) narrows() bool {
	return len(f.states)+len(f.sources) > 0 || f.worker != "" || f.value.set() || f.top > 0 ||
		slices.ContainsFunc(f.params, choice.set)
}

// with returns the query of the same filter after a change.
func (f *filter) with(change func(*filter)) string {
	g := *f
	change(&g)
	if q := g.query().Encode(); q != "" {
		return "?" + q
	}
	return "?"
}

// apply returns the rows that the filter shows, by number.
func (f *filter) apply(rows []*figure.Trial, d study.Direction) []*figure.Trial {
	if !f.narrows() {
		return rows
	}
	var shown []*figure.Trial
	for _, r := range rows {
		if f.has(r) {
			shown = append(shown, r)
		}
	}
	if f.top > 0 {
		shown = figure.Top(shown, d, f.top)
		slices.SortFunc(shown, func(a, b *figure.Trial) int { return cmp.Compare(a.Number, b.Number) })
	}
	return shown
}

func (f *filter) has(r *figure.Trial) bool {
	state := r.State
	if state == study.TrialClaimed { // people need not know the difference
		state = study.TrialRunning
	}
	if len(f.states) > 0 && !slices.Contains(f.states, state) ||
		len(f.sources) > 0 && !slices.Contains(f.sources, r.Source) ||
		f.worker != "" && r.Worker != f.worker ||
		f.value.set() && !f.value.has(r.Value) {
		return false
	}
	for i, c := range f.params {
		if !c.has(r.At[i]) {
			return false
		}
	}
	return true
}
