// Package report reads what a program reports about its own evaluation: report lines,
// metrics matched by a pattern, and a metrics file. It also decides which value is the
// trial's.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
	// Unreadable holds the texts of values that are no numbers, by metric. The name "" stands
	// for a report that cannot be read at all, and may have had any metric.
	Unreadable map[string]string
	// Hint says how an unreadable value could be read, as the continuation of a sentence.
	Hint string
	// Origin says for people where the report was found; empty if that is not known.
	Origin string
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
	if !bytes.Contains(line, marker) {
		return nil, nil
	}
	line = plain(line)
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
			reports = append(reports, broken(line[len(before)-1:]))
			line = line[i+len(marker):]
			continue
		}
		r, err := decode(clean)
		if err != nil {
			errs = append(errs, err)
		}
		if r == nil {
			r = new(broken(line[len(before)-1:][:n]))
		}
		reports = append(reports, *r)
		line = line[len(before)-1+n:]
	}
	return reports, errors.Join(errs...)
}

// broken returns a report of which only the text is known.
func broken(text []byte) Report {
	return Report{Unreadable: map[string]string{"": string(text[:min(len(text), MaxText)])}}
}

// plain returns a line without the escape sequences that colour it.
func plain(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) < 0 {
		return line
	}
	return escapes.ReplaceAll(line, nil)
}

// escapes are the sequences of terminals for colours and the like, for links and titles, and for
// character sets, with which ncurses resets colours. None ends in a character that begins a report.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z])`)

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
	if w.Metrics == nil {
		d.misplaced(b)
	}
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
	r.Unreadable = d.unreadable
	return &r, errors.Join(d.errs...)
}

// decoder reads fields and collects their errors.
type decoder struct {
	errs       []error
	unreadable map[string]string // the texts of metrics that are no numbers
}

func (d *decoder) fail(field string, raw []byte, want string) {
	d.errs = append(d.errs, fmt.Errorf("%s is %s, not %s", field, shown(string(raw)), want))
}

// misplaced complains of the first number that is no count, of a report without metrics: most
// likely it is one.
func (d *decoder) misplaced(b []byte) {
	var envelope struct {
		Fantasia map[string]json.RawMessage `json:"fantasia"`
	}
	_ = json.Unmarshal(b, &envelope) // has been read as a wire before
	for _, name := range slices.Sorted(maps.Keys(envelope.Fantasia)) {
		if _, err := number(envelope.Fantasia[name]); err == nil && string(envelope.Fantasia[name]) != "null" &&
			!slices.Contains([]string{"trial", "attempt", "step"}, strings.ToLower(name)) {
			d.errs = append(d.errs, fmt.Errorf(`%q is a number outside of "metrics": write {"fantasia": {"metrics": {%[1]q: %[2]s}}}`,
				cut(name, 64), shown(string(envelope.Fantasia[name]))))
			return
		}
	}
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
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		value := raw[name]
		v, err := number(value)
		if err != nil {
			d.fail("metric "+strconv.Quote(cut(name, 64)), value, "a number")
			if d.unreadable == nil {
				d.unreadable = map[string]string{}
			}
			if name != "" {
				d.unreadable[name] = shown(string(value))
			}
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

// shown returns the beginning of a text for people, with bytes that are not UTF-8 escaped.
func shown(text string) string {
	var b strings.Builder
	for len(text) > 0 && b.Len() < maxToken {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[0])
		} else {
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}

// cut shortens s to at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
