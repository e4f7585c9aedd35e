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
// problems that are kept, and the most bytes of the path and of the message of each.
const (
	MaxProblems = 100
	maxPath     = 200
	maxMessage  = 500
)

// Place is a position in a text, counted from 1.
type Place struct{ Line, Column int }

// At returns the place with the given line and column.
func At(line, column int) Place { return Place{Line: line, Column: column} }

// Problems are those that were found. Places holds the places of the fields that were read, by
// path; a missing field has the place of its nearest parent. They ignore further
// problems of a broken field, and of fields within one.
type Problems struct {
	Places map[string]Place
	Keys   map[string]Place // places of the fields' names, if they have any
	broken map[string]bool
	list   []study.Problem
	more   bool // there are problems that were not kept
	// Failed counts the problems of fields, including ignored ones. If it grows, the
	// caller MUST NOT use those fields further.
	Failed int
}

// NewProblems returns no problems yet, without places.
func NewProblems() *Problems {
	return &Problems{Places: make(map[string]Place), Keys: make(map[string]Place)}
}

// Add reports a problem of the field at path.
func (p *Problems) Add(path, format string, args ...any) {
	p.Failed++
	if !p.IsBroken(path) {
		p.AddAt(p.place(path), path, format, args...)
	}
}

// AddIf is Add if something is wrong.
func (p *Problems) AddIf(wrong bool, path, format string, args ...any) {
	if wrong {
		p.Add(path, format, args...)
	}
}

// AddKey is Add for a problem of the field's name instead of its value.
func (p *Problems) AddKey(path, format string, args ...any) {
	at, ok := p.Keys[path]
	if !ok || p.IsBroken(path) {
		p.Add(path, format, args...)
		return
	}
	p.Failed++
	p.AddAt(at, path, format, args...)
}

// AddAt reports a problem at the given place.
func (p *Problems) AddAt(at Place, path, format string, args ...any) {
	if p.Full() {
		p.more = true
		return
	}
	p.list = append(p.list,
		study.Problem{Line: at.Line, Column: at.Column, Path: path, Message: cut(fmt.Sprintf(format, args...), maxMessage)})
}

// Full reports whether further problems are not kept.
func (p *Problems) Full() bool { return len(p.list) >= MaxProblems }

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
func (p *Problems) place(path string) Place {
	for {
		if at, ok := p.Places[path]; ok || path == "" {
			return at
		}
		path = holder(path)
	}
}

// IsBroken reports whether the field at path, or one that contains it, could not be
// read.
func (p *Problems) IsBroken(path string) bool {
	for ; path != ""; path = holder(path) {
		if p.broken[path] {
			return true
		}
	}
	return false
}

// Unread reports whether one of the fields could not be read, and counts that as a failure: what
// they hold is not what was meant.
func (p *Problems) Unread(paths ...string) bool {
	if !slices.ContainsFunc(paths, p.IsBroken) {
		return false
	}
	p.Failed++
	return true
}

// BreakFields marks every field with a problem so far as broken.
func (p *Problems) BreakFields() {
	p.broken = make(map[string]bool, len(p.list))
	for _, problem := range p.list {
		p.broken[problem.Path] = true
	}
}

// holder returns the path without its last step, or without a part of that step.
func holder(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// Err returns the problems as a sorted error, or nil if there are none.
func (p *Problems) Err(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b study.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	list := make([]study.Problem, len(p.list), len(p.list)+1)
	for i, problem := range p.list {
		problem.Path = cut(problem.Path, maxPath)
		list[i] = problem
	}
	if p.more {
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
