package jobsidecar

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// MaxMessage is the largest termination message, in bytes, that Kubernetes keeps.
const MaxMessage = 4 << 10

// Summary summarises all reports of an attempt.
type Summary struct {
	// Value is the value of a single objective; nil if none was reported. Both it and Values
	// are nil if the metric of a limit was not reported.
	Value *messaging.Number `json:"value,omitempty"`
	// Values are those of several objectives; nil if one was not reported.
	Values []messaging.Number `json:"values,omitempty"`
	// Metrics are the final values of all metrics, or of those that fit.
	Metrics map[string]messaging.Number `json:"metrics,omitempty"`
	// Checkpoint is the last reference that was reported.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Infeasible, Retry and Error are set if the program ended the attempt itself.
	Infeasible *string `json:"infeasible,omitempty"`
	Retry      *string `json:"retry,omitempty"`
	Error      *string `json:"error,omitempty"`
	// Warning is what people should know of the reports; empty for nothing.
	Warning string `json:"warning,omitempty"`
	// Reports counts the reports with metrics.
	Reports int `json:"reports"`

	limited []string // the metrics of limits
}

// addReport adds a report; the first one that ends the attempt counts.
func (s *Summary) addReport(r report.Report) {
	if r.Checkpoint != "" {
		s.Checkpoint = r.Checkpoint
	}
	if s.Infeasible == nil && s.Retry == nil && s.Error == nil {
		s.Infeasible, s.Retry, s.Error = r.Infeasible, r.Retry, r.Error
	}
}

// Reached returns the objectives' values; nil if they were not all reported.
func (s *Summary) Reached() study.Values {
	if s.Value != nil {
		return study.Values{float64(*s.Value)}
	}
	var values study.Values
	for _, v := range s.Values {
		values = append(values, float64(v))
	}
	return values
}

func (s *Summary) conclude(c *report.Collector) {
	s.Reports = c.Reports
	values, _ := c.Values()
	_, why := c.Unread()
	switch {
	case why != "":
		s.addReport(report.Report{Error: &why})
	case c.Missing() != "":
	case len(values) == 1:
		s.Value = new(messaging.Number(values[0]))
	default:
		for _, v := range values {
			s.Values = append(s.Values, messaging.Number(v))
		}
	}
	s.Metrics, s.limited = map[string]messaging.Number{}, c.Limited()
	for name, v := range c.Final() {
		s.Metrics[name] = messaging.Number(v)
	}
}

// Encode encodes the summary as JSON of at most limit bytes; it drops what does not
// fit, metrics first, and those of limits as the last of these.
func (s *Summary) Encode(limit int) []byte {
	c := *s
	c.Metrics = maps.Clone(s.Metrics)
	names := slices.SortedFunc(maps.Keys(c.Metrics), func(a, b string) int {
		if limited := slices.Contains(s.limited, a); limited != slices.Contains(s.limited, b) {
			return map[bool]int{true: -1, false: 1}[limited]
		}
		return cmp.Compare(a, b)
	})
	for reason := limit / 8; ; reason /= 2 {
		data, err := json.Marshal(c)
		switch {
		case err == nil && len(data) <= limit:
			return data
		case len(names) > 0:
			for _, name := range names[len(names)/2:] {
				delete(c.Metrics, name)
			}
			names = names[:len(names)/2]
		case c.Warning != "":
			c.Warning = ""
		case c.Checkpoint != "":
			c.Checkpoint = "" // a truncated reference is useless
		default:
			for _, text := range []**string{&c.Infeasible, &c.Retry, &c.Error} {
				if *text != nil { // escapes take up to six bytes for one
					*text = new(strings.ToValidUTF8((**text)[:min(len(**text), reason)], ""))
				}
			}
		}
	}
}

// Parse parses a termination message; ok is false if it is not a summary but, for
// example, the end of a log.
func Parse(message string) (Summary, bool) {
	var s Summary
	if err := json.Unmarshal([]byte(message), &s); err != nil {
		return Summary{}, false
	}
	return s, true
}

// encode writes a report as the line that report.Parse reads.
func encode(r report.Report) ([]byte, error) {
	w := struct {
		Step       *int64         `json:"step,omitempty"`
		Metrics    map[string]any `json:"metrics,omitempty"`
		Infeasible *string        `json:"infeasible,omitempty"`
		Retry      *string        `json:"retry,omitempty"`
		Error      *string        `json:"error,omitempty"`
		Checkpoint string         `json:"checkpoint,omitempty"`
	}{Step: r.Step, Infeasible: r.Infeasible, Retry: r.Retry, Error: r.Error, Checkpoint: r.Checkpoint}
	if len(r.Metrics)+len(r.Unreadable) > 0 {
		w.Metrics = make(map[string]any, len(r.Metrics)+len(r.Unreadable))
		for name, v := range r.Metrics {
			w.Metrics[name] = messaging.Number(v)
		}
		for name, text := range r.Unreadable {
			w.Metrics[name] = text // which is no number here either
		}
	}
	return json.Marshal(map[string]any{"fantasia": w})
}
