package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/study"
)

// Pattern extracts metrics from arbitrary lines. It is safe for concurrent use.
type Pattern struct {
	expr  *regexp.Regexp
	names []string
}

// PatternOf returns the pattern of a study's trials, which report metrics; nil if there is none.
func PatternOf(t *study.TrialTemplate, metrics []string) (*Pattern, error) {
	if t.Metrics == nil || t.Metrics.Pattern == "" {
		return nil, nil
	}
	return NewPattern(t.Metrics.Pattern, metrics...)
}

// NewPattern compiles an RE2 expression whose named groups are metrics. The group
// study.GroupName(metric) is the metric, for each of those given.
func NewPattern(expr string, metrics ...string) (*Pattern, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("metrics pattern %q: %w", expr, err)
	}
	p := &Pattern{expr: re, names: slices.Clone(re.SubexpNames())}
	named := false
	for i, name := range p.names {
		named = named || name != ""
		for _, metric := range metrics {
			if name != "" && name == study.GroupName(metric) {
				p.names[i] = metric
			}
		}
	}
	if !named {
		return nil, fmt.Errorf("metrics pattern %q has no named group: write (?P<metric>…) around the value", expr)
	}
	return p, nil
}

// Find returns one report for each match in the line, whose escape sequences for colours are
// ignored. The error lists matches that are not numbers; the others are still returned.
func (p *Pattern) Find(line []byte) ([]Report, error) {
	var reports []Report
	var errs []error
	for _, match := range p.expr.FindAllSubmatch(plain(line), maxReports) {
		r := Report{Metrics: map[string]float64{}}
		for i, name := range p.names {
			// A group in an unused branch is nil.
			if name == "" || match[i] == nil {
				continue
			}
			v, err := looseFloat(string(match[i]))
			if err != nil {
				text := strconv.Quote(string(match[i][:min(len(match[i]), maxToken)]))
				errs = append(errs, fmt.Errorf("metric %q is %s, not a number", name, text))
				if r.Unreadable == nil {
					r.Unreadable = map[string]string{}
				}
				r.Unreadable[name] = text
				continue
			}
			r.Metrics[name] = v
		}
		if len(r.Metrics)+len(r.Unreadable) > 0 {
			reports = append(reports, r)
		}
	}
	return reports, errors.Join(errs...)
}

// ParseFile parses a metrics file, a JSON object. Fields that are not numbers are unreadable.
func ParseFile(data []byte) (Report, error) {
	clean, n := object(bytes.TrimLeft(data, space))
	if n == 0 {
		return Report{}, fmt.Errorf("not a JSON object of metrics: it starts with %q", cut(string(data), 32))
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(clean, &raw); err != nil {
		return Report{}, fmt.Errorf("not a JSON object of metrics: %w", err)
	}
	var d decoder // whose errors are of no interest: a file may hold other things
	metrics := d.metrics(raw)
	return Report{Metrics: metrics, Unreadable: d.unreadable}, nil
}
