package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// Pattern extracts metrics from arbitrary lines. It is safe for concurrent use.
type Pattern struct {
	expr  *regexp.Regexp
	names []string
}

// PatternOf returns the pattern of a study's trials; nil if there is none.
func PatternOf(t *study.TrialTemplate) (*Pattern, error) {
	if t.Metrics == nil || t.Metrics.Pattern == "" {
		return nil, nil
	}
	return NewPattern(t.Metrics.Pattern)
}

// NewPattern compiles an RE2 expression whose named groups are metrics.
func NewPattern(expr string) (*Pattern, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("metrics pattern %q: %w", expr, err)
	}
	p := &Pattern{expr: re, names: re.SubexpNames()}
	for _, name := range p.names {
		if name != "" {
			return p, nil
		}
	}
	return nil, fmt.Errorf("metrics pattern %q has no named group: write (?P<metric>…) around the value", expr)
}

// Find returns one report for each match in the line. The error lists matches that are
// not numbers; the others are still returned.
func (p *Pattern) Find(line []byte) ([]Report, error) {
	var reports []Report
	var errs []error
	for _, match := range p.expr.FindAllSubmatch(line, maxReports) {
		metrics := map[string]float64{}
		for i, name := range p.names {
			// A group in an unused branch is nil.
			if name == "" || match[i] == nil {
				continue
			}
			v, err := looseFloat(string(match[i]))
			if err != nil {
				errs = append(errs, fmt.Errorf("metric %q is %q, not a number", name, cut(string(match[i]), 64)))
				continue
			}
			metrics[name] = v
		}
		if len(metrics) > 0 {
			reports = append(reports, Report{Metrics: metrics})
		}
	}
	return reports, errors.Join(errs...)
}

// looseFloat ignores punctuation that \S+ includes, as in "0.31,".
func looseFloat(text string) (float64, error) {
	v, err := parseFloat(text)
	if err == nil {
		return v, nil
	}
	return parseFloat(strings.TrimRight(text, ",;:.)]}"))
}

// ParseFile parses a metrics file, a JSON object. It skips fields that are not numbers.
func ParseFile(data []byte) (map[string]float64, error) {
	clean, n := object(data[leadingSpace(data):])
	if n == 0 {
		return nil, fmt.Errorf("not a JSON object of metrics: it starts with %q", cut(string(data), 32))
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(clean, &raw); err != nil {
		return nil, fmt.Errorf("not a JSON object of metrics: %w", err)
	}
	metrics := map[string]float64{}
	for name, value := range raw {
		if v, err := number(value); err == nil {
			metrics[name] = v
		}
	}
	return metrics, nil
}

func leadingSpace(data []byte) int {
	for i, c := range data {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return i
		}
	}
	return len(data)
}
