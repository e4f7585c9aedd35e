package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

// screen is where text for people is written.
type screen struct {
	io.Writer
	// width is that of the terminal; 0 elsewhere, where nothing is shortened.
	width int
}

// screenOf returns the screen for what is written to w.
func screenOf(w io.Writer) screen {
	width, is := terminal(w)
	if !is {
		width = 0
	}
	return screen{Writer: w, width: width}
}

// table writes rows in aligned columns below their headings, fitted to the screen.
func (s screen) table(columns []layout.Column, rows [][]string) error {
	return layout.Table(s, s.width, columns, rows)
}

// block writes named values, fitted to the screen.
func (s screen) block(fields []field) error { return layout.Fields(s, s.width, fields) }

// field is a named value of a block.
type field = layout.Field

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
	return each.Join(slices.Sorted(maps.Keys(p)), " ", func(name string) string { return name + "=" + view.Value(p[name]) })
}

// orDash returns a text, or "-" if it is empty.
func orDash(text string) string { return cmp.Or(text, "-") }

// onTerminal writes to a terminal what layout.Visible lets through.
type onTerminal struct {
	io.Writer
	file *os.File
}

// visible returns a writer that keeps what others have written from steering a terminal. Files
// and pipes get every byte as it is.
func visible(w io.Writer) io.Writer {
	if file, ok := w.(*os.File); ok && term.IsTerminal(file.Fd()) {
		return onTerminal{layout.Visible(file), file}
	}
	return w
}

// direct returns the terminal itself, for displays that draw on it, or w if it is none. They
// MUST pass texts of others through layout.VisibleText.
func direct(w io.Writer) io.Writer {
	if t, ok := w.(onTerminal); ok {
		return t.file
	}
	return w
}

// terminal reports whether w is a terminal, and its width (80 if it is not one).
func terminal(w io.Writer) (width int, is bool) {
	t, ok := w.(onTerminal)
	if !ok {
		return 80, false
	}
	if width, _, err := term.GetSize(t.file.Fd()); err == nil && width > 0 {
		return width, true
	}
	return 80, true
}
