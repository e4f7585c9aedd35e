package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// Place is a position in a text, counted from 1.
type Place struct{ Line, Column int }

// At is the place of a line and a column.
func At(line, column int) Place { return Place{Line: line, Column: column} }

// Report collects problems. Its Places are those of the fields that were read,
// by path; the place of a field that is missing is that of what should hold it.
// Of a field in broken, or within one, no further problem is reported.
type Report struct {
	Places map[string]Place
	Keys   map[string]Place // of the fields' names, where they have any
	broken map[string]bool
	list   []study.Problem
	// Failed counts the problems of fields, also those not reported a second
	// time: what is built on the fields must not go on.
	Failed int
}

// NewReport returns a Report that knows no places yet.
func NewReport() *Report {
	return &Report{Places: make(map[string]Place), Keys: make(map[string]Place)}
}

// Add reports a problem of the field at path.
func (r *Report) Add(path, format string, args ...any) {
	r.Failed++
	if !r.IsBroken(path) {
		r.AddAt(r.place(path), path, format, args...)
	}
}

// AddKey is add for a problem of the field's name, not of its value.
func (r *Report) AddKey(path, format string, args ...any) {
	at, ok := r.Keys[path]
	if !ok || r.IsBroken(path) {
		r.Add(path, format, args...)
		return
	}
	r.Failed++
	r.AddAt(at, path, format, args...)
}

// AddAt reports a problem at a place of its own.
func (r *Report) AddAt(at Place, path, format string, args ...any) {
	r.list = append(r.list, study.Problem{Line: at.Line, Column: at.Column, Path: path, Message: fmt.Sprintf(format, args...)})
}

// place finds the nearest field on the way from path to the root that has one.
func (r *Report) place(path string) Place {
	for {
		if at, ok := r.Places[path]; ok || path == "" {
			return at
		}
		path = holder(path)
	}
}

// IsBroken reports whether the field at path, or one that it is part of, could
// not be read.
func (r *Report) IsBroken(path string) bool {
	for ; path != ""; path = holder(path) {
		if r.broken[path] {
			return true
		}
	}
	return false
}

// BreakFields marks every field that has a problem so far as broken.
func (r *Report) BreakFields() {
	r.broken = make(map[string]bool, len(r.list))
	for _, p := range r.list {
		r.broken[p.Path] = true
	}
}

// holder is the path without its last step, or a path on the way there.
func holder(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// Err is the problems as an error, sorted, or nil.
func (r *Report) Err(file string) error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b study.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &study.Problems{File: file, List: r.list}
}

// Key is a step of a path to the key of a map: ".key", or `["a key"]`
// where that would be misread.
func Key(key string) string {
	if key == "" || strings.ContainsFunc(key, func(c rune) bool {
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return fmt.Sprintf("[%q]", key)
	}
	return "." + key
}
