package dashboard

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/app/figure"
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

// The columns besides those of parameters; the keys are in addresses.
const (
	byTrial     = "trial"
	byState     = "state"
	byValue     = "value"
	bySource    = "source"
	byStaleness = "staleness"
	byWorker    = "worker"
	byStart     = "start"
	byDuration  = "duration"
	parameterBy = "p." // followed by the parameter's name
)

// sortable reports whether there is a column with a key.
func (f *filter) sortable(key string) bool {
	if name, ok := strings.CutPrefix(key, parameterBy); ok {
		return f.axes.Index(name) >= 0
	}
	return slices.Contains([]string{byTrial, byState, byValue, bySource, byStaleness, byWorker, byStart, byDuration}, key)
}

// sorted returns the rows in the table's order.
func (f *filter) sorted(rows []*figure.Trial, now figure.Moment) []*figure.Trial {
	if f.sort == byTrial { // they are in that order
		list := slices.Clone(rows)
		if f.desc {
			slices.Reverse(list)
		}
		return list
	}
	var compare func(a, b *figure.Trial) int
	numbers := func(of func(*figure.Trial) float64) func(a, b *figure.Trial) int {
		return func(a, b *figure.Trial) int {
			x, y := of(a), of(b)
			switch { // what has no value comes last in both directions
			case math.IsNaN(x) || math.IsNaN(y):
				c := cmp.Compare(boolean(math.IsNaN(x)), boolean(math.IsNaN(y)))
				if f.desc {
					c = -c
				}
				return c
			default:
				return cmp.Compare(x, y)
			}
		}
	}
	switch f.sort {
	case byState:
		compare = func(a, b *figure.Trial) int { return cmp.Compare(a.State, b.State) }
	case byValue:
		compare = numbers(func(r *figure.Trial) float64 { return r.Value })
	case bySource:
		compare = func(a, b *figure.Trial) int { return cmp.Compare(a.Source, b.Source) }
	case byStaleness:
		compare = func(a, b *figure.Trial) int { return cmp.Compare(a.Staleness, b.Staleness) }
	case byWorker:
		compare = func(a, b *figure.Trial) int { return cmp.Compare(a.Worker, b.Worker) }
	case byStart:
		compare = func(a, b *figure.Trial) int { return cmp.Compare(a.Started, b.Started) }
	case byDuration:
		compare = func(a, b *figure.Trial) int { return cmp.Compare(a.Took(now), b.Took(now)) }
	default:
		i := f.axes.Index(strings.TrimPrefix(f.sort, parameterBy))
		compare = numbers(func(r *figure.Trial) float64 { return r.At[i] })
	}
	list := slices.Clone(rows)
	slices.SortStableFunc(list, func(a, b *figure.Trial) int {
		c := compare(a, b)
		if f.desc {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.Number, b.Number))
	})
	return list
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
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
	add := func(key, title string, number bool) {
		c := column{Title: title, Number: number}
		desc := false
		if key == f.sort {
			c.Order, desc = "ascending", true
			if f.desc {
				c.Order, desc = "descending", false
			}
		}
		c.Address = f.with(func(g *filter) { g.sort, g.desc, g.page = key, desc, 1 })
		t.Columns = append(t.Columns, c)
	}
	add(byTrial, "Trial", false)
	add(byState, "State", false)
	add(byValue, q.Spec.Objective.Metric, true)
	for i := range f.axes {
		add(parameterBy+f.axes[i].Name, f.axes[i].Name, figure.Numeric(&f.axes[i]))
	}
	add(byDuration, "Duration", true)
	add(bySource, "Source", false)
	add(byStaleness, "Missed results", true)
	add(byWorker, "Worker", false)
	now := figure.At(q.now)
	for _, r := range f.sorted(q.Trials, now)[from:to] {
		t.Rows = append(t.Rows, newTableRow(q, r, now))
	}
	return t
}

// trialAddress returns the address of a trial's page.
func trialAddress(study string, number int) string {
	return Path + "studies/" + study + "/trials/" + strconv.Itoa(number)
}

func newTableRow(q *request, r *figure.Trial, now figure.Moment) tableRow {
	row := tableRow{Number: r.Number, Address: trialAddress(q.name(), r.Number), State: r.StateText(), Class: badge(r.State)}
	row.Best, row.Suggested = q.Best == r.Number, q.Recommended == r.Number
	row.Cells = append(row.Cells, cell{number(r.Value), true})
	for i := range q.filter.axes {
		p := &q.filter.axes[i]
		row.Cells = append(row.Cells, cell{figure.Text(p, r.At[i]), figure.Numeric(p)})
	}
	row.Cells = append(row.Cells, cell{figure.Duration(r.Took(now)), true}, cell{string(r.Source), false}, cell{thousands(r.Staleness), true}, cell{cmp.Or(r.Worker, "–"), false})
	return row
}
