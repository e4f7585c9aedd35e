// Command picture draws the screens of a recorded terminal session as an SVG:
// the screen at the first moment when a text was on it, and the last one.
//
//	script -qfec 'stty cols 100 rows 60; make run' run.typescript
//	go run ./research/picture -at 30/60 run.typescript > docs/images/run.svg
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

func main() { lifecycle.Main("picture", run) }

func run(context.Context) error {
	shown := flag.String("at", "", "also show the screen when this text was first on it")
	flag.Parse()
	at := *shown
	session, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		return fmt.Errorf("read the recorded session: %w", err)
	}
	// script(1) adds a line at the beginning and one at the end.
	_, session, _ = bytes.Cut(session, []byte("\n"))
	if i := bytes.LastIndex(session, []byte("\nScript done")); i >= 0 {
		session = session[:i]
	}
	var then [][]cell
	s := &screen{}
	s.write(string(session), func() {
		if then == nil && at != "" && strings.Contains(s.text(), at) {
			then = s.copy()
		}
	})
	now := s.copy()
	if at != "" {
		if then == nil {
			return fmt.Errorf("%q was never on the screen", at)
		}
		for i := 0; len(now) > 0 && i < len(then) && slices.Equal(now[0], then[i]); i++ {
			now = now[1:] // has not changed meanwhile
		}
		then = append(then, nil, []cell{{r: '…', style: faint}}, nil)
	}
	_, err = os.Stdout.WriteString(svg(append(then, now...)))
	return err
}

// The sizes of the picture, in pixels.
const (
	charWidth  = 8.43
	lineHeight = 19
	margin     = 16
)

// blocks are the characters of the progress bar, which few fonts draw alike.
var blocks = map[rune]string{'█': "1", '▒': "0.4", '░': "0.15"}

// svg draws lines of text, each word in its place.
func svg(lines [][]cell) string {
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	columns := 0
	for _, l := range lines {
		columns = max(columns, len(l))
	}
	width, height := float64(columns)*charWidth+2*margin, len(lines)*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d">`+"\n", width, height, width,
		height)
	b.WriteString(`<style>text{font:14px monospace;fill:#e6edf3;white-space:pre}` +
		`.faint{fill:#7d8590}.bold{font-weight:bold}.blue{fill:#58a6ff}.red{fill:#ff7b72}</style>` + "\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n")
	for i, line := range lines {
		y := margin + (i+1)*lineHeight - 5
		for from := 0; from < len(line); {
			to := from + 1
			for to < len(line) && line[to].style == line[from].style && (line[to].r == ' ') == (line[from].r == ' ') {
				to++
			}
			x, width := margin+float64(from)*charWidth, float64(to-from)*charWidth
			if o, ok := blocks[line[from].r]; ok {
				to = from + 1
				fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.2f" height="%d" fill="#58a6ff" opacity="%s"/>`+"\n", x, y-13, charWidth, lineHeight-3,
					o)
			} else if line[from].r != ' ' {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
					x, y, width, line[from].style.class(), html.EscapeString(word(line[from:to])))
			}
			from = to
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func word(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteRune(c.r)
	}
	return b.String()
}
