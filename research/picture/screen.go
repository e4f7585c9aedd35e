package main

import (
	"strconv"
	"strings"
)

// style is how a character looks: its colour, or else its weight.
type style int

const (
	plain style = iota
	bold
	faint
	red
	blue
)

// class is the style's attribute in the picture.
func (s style) class() string {
	if s == plain {
		return ""
	}
	return ` class="` + [...]string{"", "bold", "faint", "red", "blue"}[s] + `"`
}

// cell is a character on the screen.
type cell struct {
	r     rune
	style style
}

// screen is as much of a terminal as the live view of a run needs. It is as
// wide and as long as what is written to it.
type screen struct {
	lines    [][]cell
	row, col int
	style    style
	last     rune
}

// write writes text with escape sequences, and calls changed after each line's
// end and each sequence.
func (s *screen) write(text string, changed func()) {
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				return
			}
			s.control(text[2:2+end], text[2+end])
			text = text[3+end:]
			changed()
			continue
		}
		if rest, ok := strings.CutPrefix(text, "\x1bM"); ok { // reverse index: a line up
			s.row = max(0, s.row-1)
			text = rest
			changed()
			continue
		}
		r := []rune(text[:min(len(text), 4)])[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.row++
			changed()
		case '\b':
			s.col = max(0, s.col-1)
		case '\x1b':
		default:
			s.put(r)
		}
	}
}

// put writes a character at the cursor.
func (s *screen) put(r rune) {
	line := s.line()
	for len(*line) <= s.col {
		*line = append(*line, cell{r: ' '})
	}
	(*line)[s.col] = cell{r, s.style}
	s.col++
	s.last = r
}

// line is the cursor's.
func (s *screen) line() *[]cell {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.row]
}

// control carries out a control sequence (ECMA-48): the last byte says which.
func (s *screen) control(parameters string, final byte) {
	if strings.HasPrefix(parameters, "?") {
		return // modes of the terminal
	}
	n, err := strconv.Atoi(parameters)
	if err != nil {
		n = 1
	}
	switch final {
	case 'A':
		s.row = max(0, s.row-n)
	case 'B':
		s.row += n
	case 'C':
		s.col += n
	case 'D':
		s.col = max(0, s.col-n)
	case 'G':
		s.col = n - 1
	case 'b':
		for range n {
			s.put(s.last)
		}
	case 'J':
		s.line()
		s.lines = s.lines[:s.row+1]
		s.cut(s.col, len(*s.line()))
	case 'K':
		s.cut(s.col, len(*s.line()))
	case 'P':
		s.cut(s.col, s.col+n)
	case 'X':
		for i, line := s.col, *s.line(); i < min(s.col+n, len(line)); i++ {
			line[i] = cell{r: ' '}
		}
	case 'm':
		s.setStyle(parameters)
	}
}

// cut removes the characters of the cursor's line from one column to another.
func (s *screen) cut(from, to int) {
	line := s.line()
	from, to = min(from, len(*line)), min(to, len(*line))
	*line = append((*line)[:from], (*line)[to:]...)
}

// setStyle sets the style of the characters that are written next.
func (s *screen) setStyle(parameters string) {
	for p := range strings.SplitSeq(parameters, ";") {
		switch p {
		case "", "0", "22", "39":
			s.style = plain
		case "1":
			s.style = bold
		case "2":
			s.style = faint
		case "31":
			s.style = red
		case "34":
			s.style = blue
		}
	}
}

// text is what can be read on the screen.
func (s *screen) text() string {
	var b strings.Builder
	for _, line := range s.lines {
		for _, c := range line {
			b.WriteRune(c.r)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// copy is the screen's lines, without empty space at their ends.
func (s *screen) copy() [][]cell {
	lines := make([][]cell, len(s.lines))
	for i, line := range s.lines {
		n := len(line)
		for n > 0 && line[n-1].r == ' ' {
			n--
		}
		lines[i] = append([]cell(nil), line[:n]...)
	}
	return lines
}
