package study

import (
	"cmp"
	"fmt"
	"slices"
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
// error of Parse and of NewSpace, and never empty there.
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

// place is a position in a text, counted from 1.
type place struct{ line, column int }

// report collects problems. Its places are those of the fields that were read,
// by path; the place of a field that is missing is that of what should hold it.
// Of a field in broken, or within one, no further problem is reported.
type report struct {
	places map[string]place
	keys   map[string]place // of the fields' names, where they have any
	broken map[string]bool
	list   []Problem
	// failed counts the problems of fields, also those not reported a second
	// time: what is built on the fields must not go on.
	failed int
}

// add reports a problem of the field at path.
func (r *report) add(path, format string, args ...any) {
	r.failed++
	if !r.isBroken(path) {
		r.addAt(r.place(path), path, format, args...)
	}
}

// addKey is add for a problem of the field's name, not of its value.
func (r *report) addKey(path, format string, args ...any) {
	at, ok := r.keys[path]
	if !ok || r.isBroken(path) {
		r.add(path, format, args...)
		return
	}
	r.failed++
	r.addAt(at, path, format, args...)
}

// addAt reports a problem at a place of its own.
func (r *report) addAt(at place, path, format string, args ...any) {
	r.list = append(r.list, Problem{Line: at.line, Column: at.column, Path: path, Message: fmt.Sprintf(format, args...)})
}

// place finds the nearest field on the way from path to the root that has one.
func (r *report) place(path string) place {
	for {
		if at, ok := r.places[path]; ok || path == "" {
			return at
		}
		path = holder(path)
	}
}

// isBroken reports whether the field at path, or one that it is part of, could
// not be read.
func (r *report) isBroken(path string) bool {
	for ; path != ""; path = holder(path) {
		if r.broken[path] {
			return true
		}
	}
	return false
}

// breakFields marks every field that has a problem so far as broken.
func (r *report) breakFields() {
	r.broken = make(map[string]bool, len(r.list))
	for _, p := range r.list {
		r.broken[p.Path] = true
	}
}

// holder is the path without its last step, or a path on the way there.
func holder(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// err is the problems as an error, sorted, or nil.
func (r *report) err(file string) error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Problems{File: file, List: r.list}
}

// quoteKey is a step of a path to the key of a map: ".key", or `["a key"]`
// where that would be misread.
func quoteKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(c rune) bool {
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return fmt.Sprintf("[%q]", key)
	}
	return "." + key
}
