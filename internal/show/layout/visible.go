package layout

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// Visible returns a writer for a terminal. It shows what would steer the terminal, such as the
// escape sequences that set its title or clear it, as text: "\x1b". Notes, reasons and output
// of programs come from others, who must not command the terminal of their reader. Line breaks
// and tabs pass, a lone carriage return breaks the line, and marks that change the direction of
// text are shown too. It is not safe for concurrent use.
func Visible(w io.Writer) io.Writer { return &visible{w: w} }

type visible struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

// Write implements io.Writer. A character that is not complete is kept for the next call.
func (v *visible) Write(text []byte) (int, error) {
	all := append(v.rest, text...)
	var out bytes.Buffer
	for len(all) > 0 && utf8.FullRune(all) {
		r, n := utf8.DecodeRune(all)
		switch {
		case r == '\r' && bytes.HasPrefix(all[n:], []byte("\n")): // as Windows breaks lines
		case r == '\r':
			out.WriteByte('\n')
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == utf8.RuneError && n == 1, r < ' ', r == 0x7f:
			fmt.Fprintf(&out, `\x%02x`, all[0])
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.Write(all[:n])
		}
		all = all[n:]
	}
	v.rest = bytes.Clone(all)
	if _, err := v.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// VisibleText returns a text as Visible shows it.
func VisibleText(text string) string {
	var out bytes.Buffer
	_, _ = io.WriteString(Visible(&out), text) // a buffer takes everything
	return out.String()
}
