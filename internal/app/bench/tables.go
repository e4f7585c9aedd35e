package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Table is a table for people to read.
type Table struct {
	Title string
	Heads []string
	Rows  [][]string
}

// Tables returns the tables of a summary: for each law the variants over all
// objectives, then the objectives one by one.
func (s *Summary) Tables() []Table {
	var tables []Table
	for _, law := range distinct(s.Rows, func(r *Row) string { return r.Law }) {
		rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r Row) bool { return r.Law != law })
		objectives := distinct(rows, func(r *Row) string { return r.Objective })
		for i, objective := range objectives {
			if i == 0 || objectives[0] != All {
				mine := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Objective != objective })
				tables = append(tables, s.comparison(law, objective, mine))
			}
		}
		if objectives[0] == All {
			tables = append(tables, s.objectives(law, objectives[1:], rows))
		}
	}
	return tables
}

// distinct returns the different values of the rows, in the rows' order.
func distinct(rows []Row, of func(*Row) string) []string {
	var values []string
	for i := range rows {
		if v := of(&rows[i]); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// comparison compares the variants on one objective or on all.
func (s *Summary) comparison(law, objective string, rows []Row) Table {
	t := Table{Title: fmt.Sprintf("%s, %s: %s after %d evaluations, %d workers", where(objective), lawText(law), rows[0].Measure, s.Trials,
		s.Workers)}
	has := func(of func(*Row) bool) bool {
		return slices.ContainsFunc(rows, func(r Row) bool { return of(&r) })
	}
	columns := []struct {
		head string
		show bool
		cell func(*Row) string
	}{
		{"optimiser", true, func(r *Row) string { return r.Variant }},
		{"mode", true, func(r *Row) string { return string(r.Mode) }},
		{"runs", true, func(r *Row) string { return fmt.Sprint(r.Runs) }},
		{"mean", true, func(r *Row) string { return r.Final.text() }},
		{"median", true, func(r *Row) string { return r.Final.median() }},
		{"recommended", has(func(r *Row) bool { return r.Recommended != nil }), func(r *Row) string { return r.Recommended.text() }},
		{"less the first", has(func(r *Row) bool { return r.Difference != nil }), func(r *Row) string { return r.Difference.text() }},
		{"less sync", has(func(r *Row) bool { return r.LessSync != nil }), func(r *Row) string { return r.LessSync.text() }},
		{"at equal time", has(func(r *Row) bool { return r.EqualTime != nil }), func(r *Row) string { return r.EqualTime.text() }},
		{"speed-up", has(func(r *Row) bool { return r.Speedup != nil }), func(r *Row) string { return r.Speedup.text() }},
		{"never", has(func(r *Row) bool { return r.Speedup != nil }), func(r *Row) string { return r.Speedup.never() }},
		{"makespan", true, func(r *Row) string { return fmt.Sprintf("%.4g", r.Makespan) }},
		{"idle", true, func(r *Row) string { return fmt.Sprintf("%.0f%%", 100*r.Idle) }},
		{"pending", true, func(r *Row) string { return fmt.Sprintf("%.1f", r.Pending) }},
		{"arrived", true, func(r *Row) string { return fmt.Sprintf("%.1f", r.Arrived) }},
		{"stale", has(func(r *Row) bool { return r.Stale > 0 }), func(r *Row) string { return fmt.Sprintf("%.2f", r.Stale) }},
		{"suggest p50 / p95", true, func(r *Row) string {
			return fmt.Sprintf("%.3g / %.3g ms", 1e3*r.Suggest.P50, 1e3*r.Suggest.P95)
		}},
	}
	for _, c := range columns {
		if c.show {
			t.Heads = append(t.Heads, c.head)
		}
	}
	for i := range rows {
		var cells []string
		for _, c := range columns {
			if c.show {
				cells = append(cells, c.cell(&rows[i]))
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// objectives shows the mean of each objective, with a column for each variant and mode.
func (s *Summary) objectives(law string, objectives []string, rows []Row) Table {
	t := Table{Title: fmt.Sprintf("each objective, %s: mean after %d evaluations", lawText(law), s.Trials), Heads: []string{"objective"}}
	column := func(r *Row) string { return fmt.Sprintf("%s, %s", r.Variant, r.Mode) }
	columns := distinct(rows, column)
	t.Heads = append(t.Heads, columns...)
	for _, objective := range objectives {
		cells := make([]string, len(t.Heads))
		cells[0] = objective
		for i := range rows {
			if r := &rows[i]; r.Objective == objective {
				cells[1+slices.Index(columns, column(r))] = r.Final.text()
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func where(objective string) string {
	if objective == All {
		return "all objectives"
	}
	return objective
}

func lawText(law string) string { return law + " durations" }

// text formats a mean and its standard error, to the two leading digits of the error.
func (e *Estimate) text() string {
	switch {
	case e == nil:
		return "-"
	case e.SE == nil || *e.SE == 0:
		return fmt.Sprintf("%.4g", e.Mean)
	}
	digits := min(9, max(0, 1-int(math.Floor(math.Log10(*e.SE)+1e-9))))
	unit := math.Pow10(-digits)
	// Round first, then add 0, so that nothing is written as -0.
	return fmt.Sprintf("%.*f ± %.*f", digits, math.Round(e.Mean/unit)*unit+0, digits, *e.SE)
}

func (e *Estimate) median() string {
	if e == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", e.Median)
}

// text formats the median; the method never formats how many runs never got there.
func (s *Speedup) text() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", s.Reached.Median)
}

func (s *Speedup) never() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", s.Never, s.Reached.N)
}

// WriteMarkdown writes tables as Markdown.
func WriteMarkdown(w io.Writer, tables []Table) error {
	var b strings.Builder
	row := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	for i, t := range tables {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "**%s**\n\n", t.Title)
		row(t.Heads)
		b.WriteString(strings.Repeat("| --- ", len(t.Heads)) + "|\n")
		for _, cells := range t.Rows {
			row(cells)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}
