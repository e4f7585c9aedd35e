package report

import (
	"bytes"
	"fmt"
)

// MaxLine is the largest length of a line in bytes; longer ones are not searched for reports.
const MaxLine = 1 << 20

// Line is a line of a program's output, without its end.
type Line struct {
	// Text is the line, or the first MaxLine+1 bytes of a longer one.
	Text []byte
	// Number counts from 1. Only line feeds end the lines that it counts, as in editors.
	Number int
}

// Read returns the reports that find, which is Parse or a pattern's Find, finds in the line. It
// adds to them, and to the error, where they were: source is the name of the output.
func (l Line) Read(source string, find func(line []byte) ([]Report, error)) ([]Report, error) {
	if len(l.Text) > MaxLine {
		find = tooLong
	}
	reports, err := find(l.Text)
	for i := range reports {
		if len(reports[i].Unreadable) > 0 {
			reports[i].Origin = fmt.Sprintf("line %d of %s is %q", l.Number, source, l.Text[:min(len(l.Text), maxShown)])
		}
	}
	if err != nil {
		err = fmt.Errorf("line %d of %s: %w", l.Number, source, err)
	}
	return reports, err
}

// tooLong refuses a line, in which there may have been a report.
func tooLong(line []byte) (reports []Report, err error) {
	if at := bytes.Index(line, marker); at >= 0 {
		reports = []Report{broken(line[at:])}
	}
	return reports, fmt.Errorf("it is longer than %d bytes, and was not searched for reports", MaxLine)
}

// maxShown is how much of a line is shown to people, in bytes.
const maxShown = 256

// Lines splits a text into lines. Its memory is limited for any text. It is not safe
// for concurrent use.
type Lines struct {
	// Emit receives each non-empty line; it MUST NOT keep it.
	Emit func(line Line)

	ends    int    // line feeds so far
	partial []byte // a line without its end so far; at most MaxLine+1 bytes of it
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
		if len(l.partial) == 0 {
			l.emit(p[:min(i, MaxLine+1)])
		} else {
			l.extend(p[:i])
			l.Flush()
		}
		if p[i] == '\n' {
			l.ends++
		}
		p = p[i+1:]
	}
}

func (l *Lines) emit(text []byte) {
	if len(text) > 0 {
		l.Emit(Line{text, l.ends + 1})
	}
}

func (l *Lines) extend(p []byte) {
	l.partial = append(l.partial, p[:min(len(p), MaxLine+1-len(l.partial))]...)
}

// Flush emits an unterminated last line.
func (l *Lines) Flush() {
	l.emit(l.partial)
	if l.partial = l.partial[:0]; cap(l.partial) > MaxLine {
		l.partial = nil
	}
}
