// Package report reads what a program reports about its own evaluation: report lines,
// metrics matched by a pattern, and a metrics file. It also decides which value is the
// trial's.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxText is the largest length, in bytes, of each text in a report: reasons,
// checkpoint references and metric names (MaxName). Longer reasons are truncated;
// longer references and names are refused. Together they fit into a message.
const (
	MaxText = 4 << 10
	MaxName = 128
)

// maxReports is the largest number of reports in a line, so that a malicious line
// cannot cost more than a few passes over it.
const maxReports = 64

// Report is one report of a program. Metrics may be NaN or infinite, which means that
// the evaluation diverged.
type Report struct {
	// Trial and Attempt tag a report in stream mode; nil without a tag.
	Trial, Attempt *int
	// Step numbers the report; nil if the program does not count.
	Step    *int64
	Metrics map[string]float64
	// Infeasible, Retry and Error end the attempt, each with its reason.
	Infeasible, Retry, Error *string
	// Checkpoint is a reference for the next attempt; empty if there is none.
	Checkpoint string
	// Done ends a trial in stream mode.
	Done bool
	// Stoppable says that the program reads stop lines, in stream mode.
	Stoppable bool
}

var marker = []byte(`"fantasia"`)

// Parse returns the reports in a line of output, at any position. Anything else is log.
// The error describes unreadable parts of reports; the rest is still returned.
func Parse(line []byte) ([]Report, error) {
	var reports []Report
	var errs []error
	for range maxReports {
		i := bytes.Index(line, marker)
		if i < 0 {
			break
		}
		before := bytes.TrimRight(line[:i], " \t")
		after := bytes.TrimLeft(line[i+len(marker):], " \t")
		if !bytes.HasSuffix(before, []byte("{")) || !bytes.HasPrefix(after, []byte(":")) {
			line = line[i+len(marker):]
			continue
		}
		clean, n := object(line[len(before)-1:])
		if n == 0 {
			errs = append(errs, errors.New("a report ends before its closing brace"))
			line = line[i+len(marker):]
			continue
		}
		line = line[len(before)-1+n:]
		r, err := decode(clean)
		if err != nil {
			errs = append(errs, err)
		}
		if r != nil {
			reports = append(reports, *r)
		}
	}
	return reports, errors.Join(errs...)
}

// wire is a report as JSON. All fields are raw, so that one bad field does not hide the
// others.
type wire struct {
	Trial      json.RawMessage            `json:"trial"`
	Attempt    json.RawMessage            `json:"attempt"`
	Step       json.RawMessage            `json:"step"`
	Metrics    map[string]json.RawMessage `json:"metrics"`
	Infeasible json.RawMessage            `json:"infeasible"`
	Retry      json.RawMessage            `json:"retry"`
	Error      json.RawMessage            `json:"error"`
	Checkpoint json.RawMessage            `json:"checkpoint"`
	Done       json.RawMessage            `json:"done"`
	Stoppable  json.RawMessage            `json:"stoppable"`
}

func decode(b []byte) (*Report, error) {
	var envelope struct {
		Fantasia *wire `json:"fantasia"`
	}
	if err := json.Unmarshal(b, &envelope); err != nil {
		return nil, fmt.Errorf("invalid report: %w", err)
	}
	w := envelope.Fantasia
	if w == nil {
		return nil, errors.New("invalid report: null, want an object")
	}
	var d decoder
	r := Report{
		Step:       d.integer("step", w.Step),
		Metrics:    d.metrics(w.Metrics),
		Infeasible: d.reason("infeasible", w.Infeasible),
		Retry:      d.reason("retry", w.Retry),
		Error:      d.reason("error", w.Error),
		Checkpoint: d.reference("checkpoint", w.Checkpoint),
		Done:       d.flag("done", w.Done),
		Stoppable:  d.flag("stoppable", w.Stoppable),
		Trial:      narrow(d.integer("trial", w.Trial)),
		Attempt:    narrow(d.integer("attempt", w.Attempt)),
	}
	return &r, errors.Join(d.errs...)
}

// decoder reads fields and collects their errors.
type decoder struct{ errs []error }

func (d *decoder) fail(field string, raw []byte, want string) {
	d.errs = append(d.errs, fmt.Errorf("%s is %s, not %s", field, cut(string(raw), 64), want))
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func (d *decoder) integer(field string, raw json.RawMessage) *int64 {
	if absent(raw) {
		return nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return &n
	}
	// Many languages write whole numbers as 3.0.
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		d.fail(field, raw, "a whole number")
		return nil
	}
	return new(int64(f))
}

func narrow(n *int64) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

func (d *decoder) metrics(raw map[string]json.RawMessage) map[string]float64 {
	if len(raw) == 0 {
		return nil
	}
	metrics := make(map[string]float64, len(raw))
	for name, value := range raw {
		v, err := number(value)
		if err != nil {
			d.fail("metric "+strconv.Quote(cut(name, 64)), value, "a number")
			continue
		}
		metrics[name] = v
	}
	return metrics
}

func (d *decoder) reason(field string, raw json.RawMessage) *string {
	if absent(raw) || string(raw) == "false" {
		return nil
	}
	reason := ""
	if string(raw) != "true" && json.Unmarshal(raw, &reason) != nil {
		d.fail(field, raw, "a string")
		return nil
	}
	reason = cut(reason, MaxText)
	return &reason
}

func (d *decoder) reference(field string, raw json.RawMessage) string {
	if absent(raw) {
		return ""
	}
	var ref string
	if json.Unmarshal(raw, &ref) != nil || len(ref) > MaxText {
		d.fail(field, raw, fmt.Sprintf("a string of at most %d bytes", MaxText))
		return ""
	}
	return ref
}

func (d *decoder) flag(field string, raw json.RawMessage) bool {
	var b bool
	if !absent(raw) && json.Unmarshal(raw, &b) != nil {
		d.fail(field, raw, "true or false")
	}
	return b
}

// number parses a JSON number, a number in a string, or null, which is what JavaScript
// writes for NaN. A number too large for a float64 is infinite.
func number(raw json.RawMessage) (float64, error) {
	text := string(raw)
	if text == "null" {
		return math.NaN(), nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, err
		}
	}
	return parseFloat(text)
}

func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) {
		return v, nil
	}
	return v, err
}

// cut shortens s to at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
