package study

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds of labels, notes and attributes. MaxLabels bounds the labels of a study or a trial,
// MaxLabelBytes the sum of the lengths of their keys and values, MaxNote a note, and MaxAttributes
// the attributes of a study or a trial together as JSON, in bytes.
const (
	MaxLabels     = 64
	MaxLabelBytes = 4096
	MaxNote       = 4096
	MaxAttributes = 16384
)

// MaxLabel is how long a DNS label, and a part of a label of Kubernetes, may be.
const MaxLabel = 63

// The forms of a DNS label, as RFC 1123 has it in lower case, and of a label's key and value, which are
// those of Kubernetes.
var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	labelKey = regexp.MustCompile(
		`^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// IsName reports whether a text can be a study's name: a DNS label.
func IsName(text string) bool { return dnsLabel.MatchString(text) }

// isLabelKey reports whether Kubernetes accepts a label's key, whose domain has at most 253 characters.
func isLabelKey(key string) bool {
	return labelKey.MatchString(key) && strings.IndexByte(key, '/') <= 253
}

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
		if !isLabelKey(key) {
			add(field, "%q is not a label's key: want at most 63 letters, digits, and . _ - in between, perhaps after a domain and a slash, such "+
				"as team or example.com/team", key)
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

// CheckAttributes returns what is wrong with attributes; field is what they are called there.
func CheckAttributes(field string, attributes map[string]any) []Problem {
	if len(attributes) == 0 {
		return nil
	}
	text, err := json.Marshal(attributes)
	switch {
	case err != nil:
		return []Problem{{Path: field, Message: err.Error()}}
	case len(text) > MaxAttributes:
		return []Problem{{Path: field, Message: fmt.Sprintf("they have %d bytes together as JSON; want at most %d", len(text), MaxAttributes)}}
	}
	return nil
}

// WithAttributes returns a copy of the old attributes with those that are set, and without those
// that are set to nil; nil if there are none. They may be too large: see CheckAttributes.
func WithAttributes(old, set map[string]any) map[string]any {
	attributes := maps.Clone(old)
	if attributes == nil {
		attributes = make(map[string]any, len(set))
	}
	for key, value := range set {
		if attributes[key] = value; value == nil {
			delete(attributes, key)
		}
	}
	if len(attributes) == 0 {
		return nil
	}
	return attributes
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
