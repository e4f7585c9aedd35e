package report

import "bytes"

// MaxLine bounds a line that is looked at, in bytes; longer ones are skipped.
const MaxLine = 1 << 20

// Lines takes a text apart into lines. Its memory is bounded whatever is written.
// Not safe for concurrent use.
type Lines struct {
	// Emit gets each line that is not empty, without its end; it must not keep it.
	Emit func(line []byte)

	partial []byte // a line without its end yet
	tooLong bool   // the line is longer than MaxLine: skip to its end
}

// Add takes the next piece of the text. A carriage return ends a line too:
// progress bars write thousands of them before their first newline.
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

// Flush emits what is there of a line.
func (l *Lines) Flush() {
	if len(l.partial) > 0 {
		l.Emit(l.partial)
	}
	l.partial, l.tooLong = l.partial[:0], false
}
