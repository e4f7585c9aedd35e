package layout_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

// Nothing that a terminal would obey gets through, however it is split; text does.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext é 漢 😀\n":               "plain\n\ttext é 漢 😀\n",
		"\x1b]0;title\a\x1b[2J":               `\x1b]0;title\x07\x1b[2J`,
		"10%\r20%\rdone\r\n":                  "10%\n20%\ndone\n",
		"\x00\b\x7f\v":                        `\x00\x08\x7f\x0b`,
		"\u009b2J \u0085":                     `\u009b2J \u0085`,
		"\x9b2J \xff":                         `\x9b2J \xff`,
		"abc\u202etxt.exe\u2066\u2069\u200fx": `abc\u202etxt.exe\u2066\u2069` + "\u200fx",
	} {
		if got := layout.VisibleText(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		var split bytes.Buffer
		w := layout.Visible(&split)
		for i := range len(text) {
			if n, err := w.Write([]byte(text[i : i+1])); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		// A line break of Windows that is split is an empty line more.
		if got := split.String(); got != want && text[len(text)-2:] != "\r\n" {
			t.Errorf("%q, a byte at a time, is shown as %q, want %q", text, got, want)
		}
	}
	closed, w := io.Pipe()
	_ = closed.Close() // never fails
	if _, err := layout.Visible(w).Write([]byte("x")); err == nil {
		t.Error("the error of the terminal is lost")
	}
}
