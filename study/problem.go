package study

import (
	"fmt"
	"strings"
)

// Problem is a problem of a study, with its place.
type Problem struct {
	// Line and Column count from 1; they are 0 if the study was not parsed from text.
	Line, Column int
	// Path is the path of the field, such as spec.parameters[2].max.
	Path string
	// Message names the value and what would be accepted.
	Message string
}

// String returns "line:column: path: message", without unknown parts.
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

// Problems are all problems of a study, sorted by place. It is the error of file.Parse
// and of space.New, and is never empty there.
type Problems struct {
	// File is the file name with which the problems are printed, if any.
	File string
	List []Problem
}

// Error returns one line a problem: "file:line:column: path: message".
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
