package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/worker/report"
)

const (
	// maxBody is the largest size of a request's body, in bytes.
	maxBody = 256 << 10
	// maxMetrics is the largest number of metrics in a request.
	maxMetrics = 128
	// maxID is the largest length of ids and client names, in bytes.
	maxID = 256
	// defaultWait and maxWait are the default and the longest time that a request waits
	// for a trial.
	defaultWait = 30 * time.Second
	maxWait     = time.Minute
)

// problem describes what is wrong with a request.
type problem struct {
	status int
	// field is the wrong field; empty for the whole request.
	field, message string
}

func (p *problem) Error() string {
	if p.field == "" {
		return p.message
	}
	return p.field + ": " + p.message
}

func invalid(field, format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, field, fmt.Sprintf(format, args...)}
}

// fields are the fields of a JSON object.
type fields map[string]json.RawMessage

// readFields reads a request's body, an object with only known fields. An empty body is
// an empty object.
func readFields(w http.ResponseWriter, r *http.Request, known ...string) (fields, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &problem{http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body is larger than %d bytes", maxBody)}
	}
	if err != nil {
		return nil, invalid("", "the body cannot be read: %v", err)
	}
	return parseFields(body, known...)
}

func parseFields(body []byte, known ...string) (fields, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return fields{}, nil
	}
	clean, err := report.Object(body)
	if err != nil {
		return nil, invalid("", "the body is %v, want one JSON object", err)
	}
	f, err := object("", clean)
	if err != nil {
		return nil, err
	}
	for name := range f {
		if !slices.Contains(known, name) {
			return nil, invalid(cut(name), "unknown; known are %s", strings.Join(known, ", "))
		}
	}
	return f, nil
}

// object reads an object without duplicate names.
func object(field string, raw []byte) (fields, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, invalid(field, "is %s, want an object", cut(string(raw)))
	}
	f := fields{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, invalid(field, "no JSON: %v", err)
		}
		if _, twice := f[name]; twice {
			return nil, invalid(join(field, name), "given twice")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, invalid(join(field, name), "no JSON: %v", err)
		}
		f[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, invalid(field, "no JSON: %v", err)
	}
	if d.More() || d.InputOffset() != int64(len(raw)) {
		return nil, invalid(field, "something follows the object")
	}
	return f, nil
}

func join(field, name string) string {
	if field == "" {
		return cut(name)
	}
	return field + "." + cut(name)
}

// cut shortens a text for display.
func cut(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

func (f fields) absent(name string) bool {
	raw, ok := f[name]
	return !ok || string(raw) == "null"
}

// text returns a field of at most limit bytes; empty if it is absent.
func (f fields) text(name string, limit int) (string, error) {
	if f.absent(name) {
		return "", nil
	}
	var s string
	if json.Unmarshal(f[name], &s) != nil || len(s) > limit {
		return "", invalid(name, "is %s, want a text of at most %d bytes", cut(string(f[name])), limit)
	}
	return s, nil
}

// id returns the required field id.
func (f fields) id() (string, error) {
	id, err := f.text("id", maxID)
	if err == nil && id == "" {
		err = invalid("id", "missing; want the id from the answer of next")
	}
	return id, err
}

// reason returns a field that is true or a string with a reason.
func (f fields) reason(name string) (*string, error) {
	if raw := string(f[name]); f.absent(name) || raw == "false" {
		return nil, nil
	} else if raw == "true" {
		return new(string), nil
	}
	var why string
	if json.Unmarshal(f[name], &why) != nil {
		return nil, invalid(name, "is %s, want true, or a text that says why", cut(string(f[name])))
	}
	if len(why) > report.MaxText {
		why = strings.ToValidUTF8(why[:report.MaxText], "")
	}
	return &why, nil
}

// step returns a whole number; nil if it is absent.
func (f fields) step() (*int64, error) {
	if f.absent("step") {
		return nil, nil
	}
	v, err := report.Number(f["step"])
	if err != nil || v != math.Trunc(v) || math.Abs(v) >= 1<<53 { // NaN differs from its own truncation
		return nil, invalid("step", "is %s, want a whole number", cut(string(f["step"])))
	}
	return new(int64(v)), nil
}

// wait returns how long the client wants to wait.
func (f fields) wait() (time.Duration, error) {
	if f.absent("wait") {
		return defaultWait, nil
	}
	v, err := report.Number(f["wait"])
	if err != nil || !(v >= 0 && v <= maxWait.Seconds()) {
		return 0, invalid("wait", "is %s, want 0 to %v seconds", cut(string(f["wait"])), maxWait.Seconds())
	}
	return time.Duration(v * float64(time.Second)), nil
}

func (f fields) metrics() (map[string]float64, error) {
	if f.absent("metrics") {
		return nil, nil
	}
	raw, err := object("metrics", f["metrics"])
	if err != nil {
		return nil, err
	}
	if len(raw) > maxMetrics {
		return nil, invalid("metrics", "are %d, want at most %d", len(raw), maxMetrics)
	}
	metrics := make(map[string]float64, len(raw))
	for name, value := range raw {
		if name == "" || len(name) > report.MaxName {
			return nil, invalid(join("metrics", name), "a name of %d bytes, want 1 to %d", len(name), report.MaxName)
		}
		v, err := report.Number(value)
		if err != nil {
			return nil, invalid(join("metrics", name), "is %s, want a number", cut(string(value)))
		}
		metrics[name] = v
	}
	return metrics, nil
}

// measured reads the fields shared by reports and completions.
func (f fields) measured() (id string, r *report.Report, err error) {
	if id, err = f.id(); err != nil {
		return "", nil, err
	}
	r = &report.Report{}
	if r.Step, err = f.step(); err != nil {
		return "", nil, err
	}
	if r.Metrics, err = f.metrics(); err != nil {
		return "", nil, err
	}
	if r.Checkpoint, err = f.text("checkpoint", report.MaxText); err != nil {
		return "", nil, err
	}
	return id, r, nil
}

// completion reads the fields that end an attempt.
func (f fields) completion() (string, *report.Report, error) {
	id, r, err := f.measured()
	if err != nil {
		return "", nil, err
	}
	given := ""
	for name, field := range map[string]**string{"failed": &r.Error, "infeasible": &r.Infeasible, "retry": &r.Retry} {
		if *field, err = f.reason(name); err != nil {
			return "", nil, err
		}
		if *field != nil && given != "" {
			return "", nil, invalid(max(name, given), "beside %s, want one of failed, infeasible and retry", min(name, given))
		}
		if *field != nil {
			given = name
		}
	}
	return id, r, nil
}
