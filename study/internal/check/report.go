package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/study"
)

// The bounds of an error, so that a small file with many problems has no large one: the most
// problems that a Report keeps, and the most bytes of the path and of the message of each.
const (
	MaxProblems = 100
	maxPath     = 200
	maxMessage  = 500
)

// Place is a position in a text, counted from 1.
type Place struct{ Line, Column int }

// At returns the place with the given line and column.
func At(line, column int) Place { return Place{Line: line, Column: column} }

// Report collects problems. Places holds the places of the fields that were read, by
// path; a missing field has the place of its nearest parent. It ignores further
// problems of a broken field, and of fields within one.
type Report struct {
	Places map[string]Place
	Keys   map[string]Place // places of the fields' names, if they have any
	broken map[string]bool
	list   []study.Problem
	more   bool // there are problems that were not kept
	// Failed counts the problems of fields, including ignored ones. If it grows, the
	// caller MUST NOT use those fields further.
	Failed int
}

// NewReport returns a Report without places.
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

// AddIf is Add if something is wrong.
func (r *Report) AddIf(wrong bool, path, format string, args ...any) {
	if wrong {
		r.Add(path, format, args...)
	}
}

// AddKey is Add for a problem of the field's name instead of its value.
func (r *Report) AddKey(path, format string, args ...any) {
	at, ok := r.Keys[path]
	if !ok || r.IsBroken(path) {
		r.Add(path, format, args...)
		return
	}
	r.Failed++
	r.AddAt(at, path, format, args...)
}

// AddAt reports a problem at the given place.
func (r *Report) AddAt(at Place, path, format string, args ...any) {
	if r.Full() {
		r.more = true
		return
	}
	r.list = append(r.list,
		study.Problem{Line: at.Line, Column: at.Column, Path: path, Message: cut(fmt.Sprintf(format, args...), maxMessage)})
}

// Full reports whether further problems are not kept.
func (r *Report) Full() bool { return len(r.list) >= MaxProblems }

// cut shortens a text to at most limit bytes of whole characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.Clone(text[:limit]) + "…"
}

// place returns the place of the field, or of its nearest parent that has one.
func (r *Report) place(path string) Place {
	for {
		if at, ok := r.Places[path]; ok || path == "" {
			return at
		}
		path = holder(path)
	}
}

// IsBroken reports whether the field at path, or one that contains it, could not be
// read.
func (r *Report) IsBroken(path string) bool {
	for ; path != ""; path = holder(path) {
		if r.broken[path] {
			return true
		}
	}
	return false
}

// Unread reports whether one of the fields could not be read, and counts that as a failure: what
// they hold is not what was meant.
func (r *Report) Unread(paths ...string) bool {
	if !slices.ContainsFunc(paths, r.IsBroken) {
		return false
	}
	r.Failed++
	return true
}

// BreakFields marks every field with a problem so far as broken.
func (r *Report) BreakFields() {
	r.broken = make(map[string]bool, len(r.list))
	for _, p := range r.list {
		r.broken[p.Path] = true
	}
}

// holder returns the path without its last step, or without a part of that step.
func holder(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// Err returns the problems as a sorted error, or nil if there are none.
func (r *Report) Err(file string) error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b study.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	list := make([]study.Problem, len(r.list), len(r.list)+1)
	for i, p := range r.list {
		p.Path = cut(p.Path, maxPath)
		list[i] = p
	}
	if r.more {
		list = append(list, study.Problem{Message: fmt.Sprintf("and more: these are the first %d problems", MaxProblems)})
	}
	return &study.Problems{File: file, List: list}
}

// Key returns the step of a path to the key of a map: ".key", or `["a key"]` if the
// former would be ambiguous.
func Key(key string) string {
	if key == "" || strings.ContainsFunc(key, func(c rune) bool {
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return fmt.Sprintf("[%q]", key)
	}
	return "." + key
}
