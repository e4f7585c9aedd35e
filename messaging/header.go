package messaging

import "strings"

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
