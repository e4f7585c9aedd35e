package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/fantasia-hpo/fantasia/study"
)

// valueGroup matches a number after which punctuation or a unit may follow.
const valueGroup = `[^\s,;%|│]+`

// Guess returns a pattern that finds metrics in a program's output, where their names stand
// before their numbers as in "loss=0.5" or "Val Loss: 0.5", and the text that it found last. The
// pattern is empty unless each metric was found.
func Guess(output string, metrics ...string) (pattern, found string) {
	for _, group := range []string{valueGroup, wide} { // the second one for numbers that the first one would cut
		var parts []string
		for _, metric := range metrics {
			part, text := guess(output, metric, group)
			parts, found = append(parts, part), text
		}
		pattern = strings.Join(parts, "|")
		if slices.Contains(parts, "") {
			continue
		}
		if p, err := NewPattern(pattern, metrics...); err == nil && p.finds(output, metrics) {
			return pattern, found
		}
	}
	return "", ""
}

// Advice says which pattern of a study file would find the metrics in a program's output, as the
// continuation of a sentence; empty if none can be guessed.
func Advice(output string, metrics ...string) string {
	pattern, found := Guess(output, metrics...)
	if pattern == "" {
		return ""
	}
	return fmt.Sprintf("; %q can be read with spec.trial.%s", strings.TrimSpace(found), Setting(pattern))
}

// Setting returns the line of a study file that sets a pattern, below spec.trial.
func Setting(pattern string) string {
	return "metrics: {pattern: '" + strings.ReplaceAll(pattern, "'", "''") + "'}"
}

// finds reports whether the pattern reads a number for each metric.
func (p *Pattern) finds(output string, metrics []string) bool {
	read := map[string]bool{}
	for line := range strings.Lines(output) {
		reports, err := p.Find([]byte(line))
		if err != nil {
			return false
		}
		for _, r := range reports {
			for name := range r.Metrics {
				read[name] = true
			}
		}
	}
	return !slices.ContainsFunc(metrics, func(m string) bool { return !read[m] })
}

// guess returns a pattern for one metric, whose number group matches, and its last occurrence.
func guess(output, metric, group string) (pattern, found string) {
	words := strings.FieldsFunc(metric, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return "", ""
	}
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	named := regexp.MustCompile(`(?i)(^|[^\pL\d_/.-])(` + strings.Join(words, `[\s_/.-]*`) + `["']?(?:\s*[:=│|]\s*|\s+))(` + group + `)`)
	for line := range strings.Lines(output) {
		for _, m := range named.FindAllStringSubmatch(string(plain([]byte(line))), -1) {
			if _, err := looseFloat(m[3]); err != nil && group != wide {
				continue
			}
			start := `\b`
			if m[1] == "" || unicode.IsSpace(rune(m[1][0])) {
				start = `(?:^|\s)`
			}
			pattern = start + spaces.ReplaceAllString(regexp.QuoteMeta(m[2]), `\s+`) + "(?P<" + study.GroupName(metric) + ">" + group + ")"
			found = m[2] + m[3]
		}
	}
	return pattern, found
}

var spaces = regexp.MustCompile(`\s+`)
