package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

// table writes rows in aligned columns below their headings.
func table(w io.Writer, heads []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heads}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	return nil
}

// field is a line of a block: a name and its value.
type field struct{ name, value string }

// block writes fields as "name:  value", aligned. It skips fields without a value and
// indents further lines of a value.
func block(w io.Writer, fields []field) error {
	fields = slices.DeleteFunc(fields, func(f field) bool { return f.value == "" })
	width := 0
	for _, f := range fields {
		width = max(width, utf8.RuneCountInString(f.name))
	}
	var b strings.Builder
	for _, f := range fields {
		value := strings.ReplaceAll(f.value, "\n", "\n"+strings.Repeat(" ", width+3))
		fmt.Fprintf(&b, "%-*s  %s\n", width+1, f.name+":", value)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

// human formats a duration for people, with about three digits.
func human(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// between formats the time from one moment to another; "-" if either is unknown.
func between(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "-"
	}
	return human(to.Sub(from))
}

// number formats a value with six digits.
func number(v float64) string { return view.Number(v) }

// point formats a point on one line, sorted by name.
func point(p view.Parameters) string {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		value := study.Format(p[name])
		if v, ok := p[name].(float64); ok {
			value = number(v)
		}
		names[i] = name + "=" + value
	}
	return strings.Join(names, " ")
}

// orDash returns a text, or "-" if it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
