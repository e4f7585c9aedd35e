package report

import "bytes"

// MaxLine is the largest length of a line in bytes; longer ones are skipped.
const MaxLine = 1 << 20

// Lines splits a text into lines. Its memory is limited for any text. It is not safe
// for concurrent use.
type Lines struct {
	// Emit receives each non-empty line without its end; it MUST NOT keep it.
	Emit func(line []byte)

	partial []byte // a line without its end so far
	tooLong bool   // the line is longer than MaxLine and is skipped
}

// Add takes the next part of the text. Carriage returns end lines too: progress bars
// write thousands of them before their first newline.
func (l *Lines) Add(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			l.extend(p)
			return
		}
		if len(l.partial) == 0 && !l.tooLong {
			if i > 0 && i <= MaxLine {
				l.Emit(p[:i])
			}
		} else {
			l.extend(p[:i])
			l.Flush()
		}
		p = p[i+1:]
	}
}

func (l *Lines) extend(p []byte) {
	if l.tooLong || len(l.partial)+len(p) > MaxLine {
		l.partial, l.tooLong = nil, true
		return
	}
	l.partial = append(l.partial, p...)
}

// Flush emits an unterminated last line.
func (l *Lines) Flush() {
	if len(l.partial) > 0 {
		l.Emit(l.partial)
	}
	l.partial, l.tooLong = l.partial[:0], false
}
