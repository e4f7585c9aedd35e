package study

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a study, and where.
type Problem struct {
	// Line and Column count from 1; 0 where the study was not read from text.
	Line, Column int
	// Path leads to the field, as in spec.parameters[2].max.
	Path string
	// Message names the value and what would be accepted.
	Message string
}

// String is "line:column: path: message", without the parts that are unknown.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is everything that is wrong with a study, sorted by place. It is the
// error of file.Parse and of space.New, and never empty there.
type Problems struct {
	// File is the name that the problems are printed with, if any.
	File string
	List []Problem
}

// Error is one line a problem: "file:line:column: path: message".
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, problem := range p.List {
		lines[i] = problem.String()
		switch {
		case p.File != "" && problem.Line > 0:
			lines[i] = p.File + ":" + lines[i]
		case p.File != "":
			lines[i] = p.File + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
