package report

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
// ignored. The error lists matches that are not numbers, or only parts of numbers; the others are still
// returned.
func (p *Pattern) Find(line []byte) ([]Report, error) {
	var reports []Report
	var errs []error
	line = plain(line)
	for _, match := range p.expr.FindAllSubmatchIndex(line, maxReports) {
		r := Report{Metrics: map[string]float64{}}
		for i, name := range p.names {
			// A group in an unused branch has no place.
			if name == "" || match[2*i] < 0 {
				continue
			}
			if err := p.read(&r, line, match, i); err != nil {
				errs = append(errs, err)
			}
		}
		if len(r.Metrics)+len(r.Unreadable) > 0 {
			reports = append(reports, r)
		}
	}
	return reports, errors.Join(errs...)
}

// float reads what a group has matched.
func (p *Pattern) float(group int, text string) (float64, error) {
	if strings.Contains(p.expr.String(), "(?P<"+p.expr.SubexpNames()[group]+">"+wide+")") {
		return wideFloat(text)
	}
	return looseFloat(text)
}

// read adds the value of a group to a report.
func (p *Pattern) read(r *Report, line []byte, match []int, group int) error {
	name, from, to := p.names[group], match[2*group], match[2*group+1]
	text := string(line[from:to])
	v, err := p.float(group, text)
	whole := wholeNumber(line, from, to, err == nil, from == match[0], to == match[1])
	if err == nil && whole == "" {
		r.Metrics[name] = v
		return nil
	}
	if whole != "" {
		r.Hint, text = p.cutAdvice(p.expr.SubexpNames()[group], text, whole, line), whole
	}
	text = strconv.Quote(text[:min(len(text), maxToken)])
	if r.Unreadable == nil {
		r.Unreadable = map[string]string{}
	}
	r.Unreadable[name] = text
	return fmt.Errorf("metric %q is %s, not a number%s", name, text, r.Hint)
}
