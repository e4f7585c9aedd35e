package messaging

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxEnvelope is the largest size of an encoded envelope in bytes. The streams refuse
// messages over 256 KiB including headers, which get 4 KiB.
const MaxEnvelope = 252 << 10

var (
	// ErrVersion means that an envelope has a schema version other than SchemaVersion.
	ErrVersion = errors.New("unknown schema version")
	// ErrInvalid means that an envelope breaks a rule. The message names the field, its
	// value, and what would be accepted.
	ErrInvalid = errors.New("invalid envelope")
	// ErrTooLarge means that an envelope is longer than MaxEnvelope, or a message
	// longer than its stream accepts.
	ErrTooLarge = errors.New("envelope too large")
)

// Envelope is one of *Assignment, *Claim, *Result, *Measurement, *Heartbeat,
// *Control and *LogPart.
type Envelope interface {
	// Validate checks every rule except the size; it returns ErrVersion or ErrInvalid.
	Validate() error
	// Subject returns the subject on which the envelope is published.
	Subject(shard string) string

	// bound shortens what is too long but need not be refused.
	bound()
}

// Encode encodes an envelope as JSON with the current schema version, ignoring its
// Version. It truncates a failure's message to MaxMessage, so that a long message never
// prevents a result from being published. Anything else out of bounds is an error:
// ErrInvalid or ErrTooLarge.
func Encode(e Envelope) ([]byte, error) {
	v := stamped(e)
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", e, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w: %w", e, ErrInvalid, err)
	}
	if len(data) > MaxEnvelope {
		return nil, fmt.Errorf("encode %T: %w: %d bytes, at most %d", e, ErrTooLarge, len(data), MaxEnvelope)
	}
	return data, nil
}

// Decode decodes an envelope from JSON into e, which must be zero. It never panics. It
// ignores unknown fields, so that a newer sender can add some within a schema version.
func Decode(data []byte, e Envelope) error {
	if len(data) > MaxEnvelope {
		return fmt.Errorf("decode %T: %w: %d bytes, at most %d", e, ErrTooLarge, len(data), MaxEnvelope)
	}
	if err := json.Unmarshal(data, e); err != nil {
		if v := peekVersion(data); v != nil {
			return fmt.Errorf("decode %T: %w", e, v)
		}
		return fmt.Errorf("decode %T: %w: %w", e, ErrInvalid, err)
	}
	e.bound()
	if err := e.Validate(); err != nil {
		return fmt.Errorf("decode %T: %w", e, err)
	}
	return nil
}

// DecodeFrom is Decode for a message that arrived on a subject. It refuses an envelope
// that belongs to another subject: brokers let senders publish only on their own
// subjects, so the subject identifies the sender.
func DecodeFrom(subject string, data []byte, e Envelope) error {
	s, err := ParseSubject(subject)
	if err != nil {
		return fmt.Errorf("decode %T: %w", e, err)
	}
	if err := Decode(data, e); err != nil {
		return err
	}
	if want := e.Subject(s.Shard); want != subject {
		return fmt.Errorf("decode %T: %w: came on %q, belongs on %q", e, ErrInvalid, subject, want)
	}
	return nil
}

// peekVersion returns ErrVersion if the data has another version, in which the types of
// other fields may have changed.
func peekVersion(data []byte) error {
	var head struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &head) == nil {
		return checkVersion(head.Version)
	}
	return nil // Decode reports what is wrong
}

// stamped returns a copy of an envelope to encode, with the schema version set.
func stamped(e Envelope) Envelope {
	v := reflect.New(reflect.TypeOf(e).Elem())
	v.Elem().Set(reflect.ValueOf(e).Elem())
	v.Elem().FieldByName("Version").SetInt(SchemaVersion)
	c, _ := v.Interface().(Envelope)
	c.bound()
	return c
}

func (*Assignment) bound()  {}
func (*Claim) bound()       {}
func (*Measurement) bound() {}
func (*Heartbeat) bound()   {}
func (*Control) bound()     {}
func (*LogPart) bound()     {}

// bound truncates the failure's message in a copy, as the failure may belong to the
// caller.
func (r *Result) bound() {
	if r.Failure == nil || len(r.Failure.Message) <= MaxMessage {
		return
	}
	f := *r.Failure
	f.Message = cut(f.Message, MaxMessage)
	r.Failure = &f
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// The headers that carry a W3C trace context (https://www.w3.org/TR/trace-context/).
const (
	HeaderTraceparent = "traceparent"
	HeaderTracestate  = "tracestate"
)

// The headers of a message in the dead-letter queue: its original subject and why it
// could not be used.
const (
	HeaderSubject = "Fantasia-Subject"
	HeaderReason  = "Fantasia-Reason"
)

// Limits of the headers. A traceparent of version 00 has 55 bytes, and senders need not
// keep more than 512 bytes of tracestate.
const (
	lenTraceparent = 55
	maxTracestate  = 512
)

// Trace returns the envelope's trace context, for buses to set and read.
func (t *TraceContext) Trace() *TraceContext { return t }

// Sane returns the trace context without malformed parts, since a trace is worth less
// than its message. A tracestate is dropped with its traceparent.
func (t TraceContext) Sane() TraceContext {
	if !validTraceparent(t.Traceparent) {
		return TraceContext{}
	}
	if len(t.Tracestate) > maxTracestate || strings.ContainsAny(t.Tracestate, "\r\n\x00") {
		t.Tracestate = ""
	}
	return t
}

// validTraceparent checks the form of version 00: two, 32, 16 and two digits of
// lower-case hex, ids not all zero.
func validTraceparent(s string) bool {
	if len(s) != lenTraceparent || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	trace, span, flags := s[3:35], s[36:52], s[53:]
	return hex(trace) && hex(span) && hex(flags) &&
		strings.Trim(trace, "0") != "" && strings.Trim(span, "0") != ""
}

func hex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
