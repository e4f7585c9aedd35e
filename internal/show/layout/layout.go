// Package layout fits tables and named values to the width of a terminal. It never
// breaks a line in the middle of a word.
package layout

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
)

const (
	// gap is the space between the columns of a table.
	gap = 2
	// narrowest is the least width to which a column is cut when nothing else helps.
	narrowest = 4
)

// Column is a column of a table.
type Column struct {
	Head string
	// Rank orders the columns by what they are worth: when a table is too wide, the
	// column with the highest rank is dropped first. Those of rank 0 always stay.
	Rank int
	// Least is the width to which long cells may be shortened before any column is
	// dropped; 0 means that cells keep their full width.
	Least int
	// End keeps the end of a cell that is shortened, as suits a path.
	End bool
}

// Table writes rows in aligned columns below their headings. No line is wider than
// width; 0 means any width. If the table does not fit, it first shortens long cells,
// then drops columns by their rank. Each row MUST have a cell for each column.
func Table(w io.Writer, width int, columns []Column, rows [][]string) error {
	all := make([][]string, 0, len(rows)+1)
	all = append(all, each.Of(columns, func(c Column) string { return c.Head }))
	for _, row := range rows {
		all = append(all, each.Of(row, func(cell string) string { return strings.Join(strings.Fields(cell), " ") }))
	}
	shown, widths := fit(columns, all, width)
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, at := range shown {
			cell := shorten(row[at], widths[i], columns[at].End)
			if i < len(shown)-1 {
				cell += strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+gap)
			}
			line.WriteString(cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	return nil
}

// fit returns the columns that are shown and their widths.
func fit(columns []Column, rows [][]string, width int) (shown, widths []int) {
	natural, least := make([]int, len(columns)), make([]int, len(columns))
	for i, c := range columns {
		shown = append(shown, i)
		for _, row := range rows {
			natural[i] = max(natural[i], ansi.StringWidth(row[i]))
		}
		least[i] = natural[i]
		if c.Least > 0 {
			least[i] = min(natural[i], max(c.Least, ansi.StringWidth(c.Head)))
		}
	}
	of := func(all []int) []int { return each.Of(shown, func(at int) int { return all[at] }) }
	if width <= 0 {
		return shown, natural
	}
	for total(of(least)) > width {
		at := slices.IndexFunc(shown, func(i int) bool {
			return columns[i].Rank > 0 && !slices.ContainsFunc(shown, func(j int) bool { return columns[j].Rank > columns[i].Rank })
		})
		if at < 0 {
			break
		}
		shown = slices.Delete(shown, at, at+1)
	}
	widths = of(natural)
	narrow(widths, of(least), width)
	// What has to stay may still be too wide.
	narrow(widths, slices.Repeat([]int{narrowest}, len(widths)), width)
	return shown, widths
}

// total returns the width of a table with columns of these widths.
func total(widths []int) int {
	sum := gap * max(0, len(widths)-1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// narrow takes from the widest column that is wider than its least width, until the
// table fits or no such column is left.
func narrow(widths, least []int, width int) {
	for excess := total(widths) - width; excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// shorten cuts a cell to a width and marks the cut.
func shorten(cell string, width int, end bool) string {
	excess := ansi.StringWidth(cell) - width
	switch {
	case excess <= 0:
		return cell
	case end:
		cut := ansi.TruncateLeft(cell, excess+1, "…")
		if ansi.StringWidth(cut) > width { // the cut fell into a wide character, which stayed
			cut = ansi.TruncateLeft(cell, excess+2, "…")
		}
		return cut
	default:
		return ansi.Truncate(cell, width, "…")
	}
}

// Field is a named value.
type Field struct {
	Name, Value string
	// Words replaces Value by a command, which is broken between its words in a way
	// that a shell still reads as one command.
	Words []string
	// Exact keeps the lines of Value as they are, such as those of a log.
	Exact bool
}

// Fields writes fields as "name:  value", aligned. It omits fields without a value,
// breaks lines between words where they are wider than width (0 means any width), and
// indents further lines of a value.
func Fields(w io.Writer, width int, fields []Field) error {
	names := 0
	for _, f := range fields {
		if f.Value != "" || len(f.Words) > 0 {
			names = max(names, ansi.StringWidth(f.Name))
		}
	}
	indent := names + 3
	var b strings.Builder
	for _, f := range fields {
		var lines []string
		switch columns := width - indent; {
		case len(f.Words) > 0:
			lines = command(f.Words, width, columns)
		case f.Value == "":
			continue
		case f.Exact || width <= 0 || columns <= 0:
			lines = strings.Split(f.Value, "\n")
		default:
			lines = wrapLines(f.Value, columns)
		}
		fmt.Fprintf(&b, "%s%s  %s\n", f.Name+":", strings.Repeat(" ", names-ansi.StringWidth(f.Name)),
			strings.Join(lines, "\n"+strings.Repeat(" ", indent)))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

// Wrap breaks a text between words into lines of at most width columns. A word that is
// wider itself stays whole.
func Wrap(text string, width int) []string { return fill(strings.Fields(text), width, "") }

// wrapLines wraps those lines of a text that are wider than width.
func wrapLines(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if ansi.StringWidth(line) <= width {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, Wrap(line, width)...)
	}
	return lines
}

// command breaks a command between words; every line but the last ends with a
// backslash. It has any width if width is 0.
func command(words []string, width, columns int) []string {
	if width <= 0 {
		return []string{strings.Join(words, " ")}
	}
	return fill(words, max(columns, 1), ` \`)
}

// fill puts as many words on each line as fit beside the mark that ends every line but
// the last.
func fill(words []string, width int, mark string) []string {
	var lines []string
	line := ""
	for i, word := range words {
		columns := width
		if i < len(words)-1 {
			columns -= len(mark)
		}
		if line != "" && ansi.StringWidth(line)+1+ansi.StringWidth(word) > columns {
			lines = append(lines, line+mark)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
