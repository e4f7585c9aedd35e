package study

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"
)

// The bounds of labels and notes. MaxLabels bounds the labels of a study or a trial,
// MaxLabelBytes the sum of the lengths of their keys and values, and MaxNote a note, in
// bytes.
const (
	MaxLabels     = 64
	MaxLabelBytes = 4096
	MaxNote       = 4096
)

// The forms of a label's key and value, which are those of Kubernetes.
var (
	labelKey   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// CheckLabels returns what is wrong with labels, a problem for each; field is what they
// are called there, such as "metadata.labels".
func CheckLabels(field string, labels map[string]string) (problems []Problem) {
	add := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if len(labels) > MaxLabels {
		add(field, "there are %d labels: at most %d are accepted", len(labels), MaxLabels)
		return problems
	}
	bytes := 0
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		bytes += len(key) + len(value)
		if !labelKey.MatchString(key) {
			add(field, "%q is not a label's key: want at most 63 letters, digits, and . _ - in between, perhaps after a domain and a slash, such as team or example.com/team", key)
		}
		if !labelValue.MatchString(value) {
			add(field+"."+key, "%q is not a label's value: want at most 63 letters, digits, and . _ - in between", value)
		}
	}
	if bytes > MaxLabelBytes {
		add(field, "the labels have %d bytes: at most %d are accepted", bytes, MaxLabelBytes)
	}
	return problems
}

// CheckNote returns what is wrong with a note; field is what it is called there.
func CheckNote(field, note string) []Problem {
	switch {
	case len(note) > MaxNote:
		return []Problem{{Path: field, Message: fmt.Sprintf("the note has %d bytes: at most %d are accepted", len(note), MaxNote)}}
	case !utf8.ValidString(note):
		return []Problem{{Path: field, Message: "the note is not valid UTF-8"}}
	default:
		return nil
	}
}

// HasLabels reports whether labels include all those that are wanted.
func HasLabels(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
