package dashboard

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// rowsOnPage is the number of rows of a page of the table of trials.
const rowsOnPage = 50

// table is a page of the table of trials.
type table struct {
	Columns []column
	Rows    []tableRow
	// First and Last are the places of its rows among Of rows, from 1 on.
	First, Last, Of int
	// Earlier and Later are the addresses of the pages before and after; empty for none.
	Earlier, Later string
}

// column is a column of the table. Order is "ascending" or "descending" if the table is
// sorted by it.
type column struct {
	Title, Address, Order string
	Number                bool
	// key is its name in addresses.
	key  string
	text func(*figure.Trial) string
	// number is what the column is sorted by; nil if that is its text.
	number func(*figure.Trial) float64
}

// tableRow is a trial in the table.
type tableRow struct {
	Number          int
	Address         string
	State, Class    string
	Best, Suggested bool
	Cells           []cell
}

// cell is a value of a row.
type cell struct {
	Text   string
	Number bool
}

// byTrial is the key of the column by which the table is sorted at first.
const byTrial = "trial"

// columns returns the columns of the table. The page writes the first two itself; the last
// one has no place there, but the table can be sorted by it.
func (f *filter) columns(metrics []string, now figure.Moment) []column {
	type trial = *figure.Trial
	list := []column{
		{key: byTrial, Title: "Trial", number: func(t trial) float64 { return float64(t.Number) }},
		{key: "state", Title: "State", text: trial.StateText},
		{key: "value", Title: metrics[0], Number: true, number: func(t trial) float64 { return t.Value },
			text: func(t trial) string { return number(t.Value) }},
	}
	for i, metric := range metrics[1:] {
		value := func(t trial) float64 {
			if i+1 < len(t.Values) {
				return t.Values[i+1]
			}
			return math.NaN()
		}
		list = append(list, column{key: "value." + strconv.Itoa(i+2), Title: metric, Number: true, number: value,
			text: func(t trial) string { return number(value(t)) }})
	}
	for i := range f.axes {
		p := &f.axes[i]
		list = append(list, column{
			key: "p." + p.Name, Title: p.Name, Number: figure.Numeric(p),
			number: func(t trial) float64 { return t.At[i] }, text: func(t trial) string { return figure.Text(p, t.At[i]) },
		})
	}
	return append(list,
		column{key: "duration", Title: "Duration", Number: true, number: func(t trial) float64 { return t.Took(now).Seconds() },
			text: func(t trial) string { return figure.Duration(t.Took(now)) }},
		column{key: "source", Title: "Source", text: func(t trial) string { return string(t.Source) }},
		column{key: "staleness", Title: "Missed results", Number: true, number: func(t trial) float64 { return float64(t.Staleness) },
			text: func(t trial) string { return thousands(t.Staleness) }},
		column{key: "worker", Title: "Worker", text: func(t trial) string { return cmp.Or(t.Worker, "–") }},
		column{key: "start", number: func(t trial) float64 { return float64(t.Started) }},
	)
}

// sorted returns the trials in the order of a column. Those without a value come last in
// both directions.
func (c *column) sorted(trials []*figure.Trial, desc bool) []*figure.Trial {
	list := slices.Clone(trials)
	slices.SortStableFunc(list, func(a, b *figure.Trial) int {
		var order int
		if c.number == nil {
			order = cmp.Compare(c.text(a), c.text(b))
		} else if x, y := c.number(a), c.number(b); math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.Number, b.Number)) // NaN is the least
		} else {
			order = cmp.Compare(x, y)
		}
		if desc {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.Number, b.Number))
	})
	return list
}

// newTable returns the page of the table that the filter asks for.
func newTable(q *request) *table {
	f := q.filter
	t := &table{Of: len(q.Trials)}
	pages := max(1, (t.Of+rowsOnPage-1)/rowsOnPage)
	page := min(f.page, pages)
	from := (page - 1) * rowsOnPage
	to := min(from+rowsOnPage, t.Of)
	t.First, t.Last = min(from+1, t.Of), to
	if page > 1 {
		t.Earlier = f.with(func(g *filter) { g.page = page - 1 })
	}
	if page < pages {
		t.Later = f.with(func(g *filter) { g.page = page + 1 })
	}
	trials := q.Trials
	all := f.columns(study.MetricNames(q.Spec.Objectives()), q.Now)
	for i := range all {
		c, desc := &all[i], false
		if c.key == f.sort {
			trials = c.sorted(trials, f.desc)
			c.Order, desc = "ascending", true
			if f.desc {
				c.Order, desc = "descending", false
			}
		}
		c.Address = f.with(func(g *filter) { g.sort, g.desc, g.page = c.key, desc, 1 })
	}
	t.Columns = all[:len(all)-1]
	for _, r := range trials[from:to] {
		row := tableRow{Number: r.Number, Address: trialAddress(q.name(), r.Number), State: r.StateText(), Class: badge(r.State),
			Best: q.Best == r.Number, Suggested: q.Recommended == r.Number}
		for _, c := range t.Columns[2:] {
			row.Cells = append(row.Cells, cell{c.text(r), c.Number})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// trialAddress returns the address of a trial's page.
func trialAddress(study string, number int) string {
	return studyAddress(study) + "/trials/" + strconv.Itoa(number)
}
