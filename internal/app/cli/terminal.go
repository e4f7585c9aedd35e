package cli

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"

	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

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
