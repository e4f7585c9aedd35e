package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strconv"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

type spanIDKey struct{}

// WithSpan makes the next span that is started under the returned context a root span
// with exactly this trace id and span id. The ids were drawn when the trial was
// suggested and sent to others before the span could end.
func WithSpan(ctx context.Context, traceID trace.TraceID, spanID trace.SpanID) context.Context {
	return context.WithValue(ctx, spanIDKey{}, trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID}))
}

type childIDKey struct{}

// child is a span id reserved for one child of a span.
type child struct {
	parent trace.SpanContext
	id     trace.SpanID
}

// WithChild makes the next span that is started under the returned context a child of
// ctx's span with exactly this span id: see ChildID.
func WithChild(ctx context.Context, id trace.SpanID) context.Context {
	return context.WithValue(ctx, childIDKey{}, child{trace.SpanContextFromContext(ctx), id})
}

// IDGenerator returns the ID generator that a tracer provider needs for WithSpan and
// WithChild; Setup's provider has it.
func IDGenerator() sdktrace.IDGenerator { return idGenerator{} }

// idGenerator draws random ids unless WithSpan or WithChild has set them.
type idGenerator struct{}

// NewIDs is called for root spans.
func (g idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if sc, ok := ctx.Value(spanIDKey{}).(trace.SpanContext); ok {
		return sc.TraceID(), sc.SpanID()
	}
	var traceID trace.TraceID
	rand.Read(traceID[:]) // never fails: see crypto/rand
	return traceID, g.NewSpanID(ctx, traceID)
}

// NewSpanID is called for spans with a parent.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if c, ok := ctx.Value(childIDKey{}).(child); ok && c.parent.Equal(trace.SpanContextFromContext(ctx)) {
		return c.id
	}
	var spanID trace.SpanID
	rand.Read(spanID[:]) // never fails: see crypto/rand
	return spanID
}

// ChildID returns the span id of a part of a trial's trace, a function of the trace,
// the part's name and the attempt. Anyone who knows the trace can start a child of a
// part before the leader has emitted it, and each leader emits the same ids.
func ChildID(traceID trace.TraceID, name string, attempt int) (id trace.SpanID) {
	h := sha256.New()
	h.Write(traceID[:])
	h.Write([]byte(name))
	h.Write(strconv.AppendInt(nil, int64(attempt), 10))
	copy(id[:], h.Sum(nil))
	return id
}

// RefitSpan returns the span context of a study's refit, a function of the study's id,
// the request's number and its time, which the ledger keeps with every trial of that
// request.
func RefitSpan(studyID string, request int, asked time.Time) trace.SpanContext {
	h := sha256.New()
	h.Write([]byte(studyID))
	h.Write(strconv.AppendInt([]byte{0}, int64(request), 10))
	h.Write(strconv.AppendInt([]byte{0}, asked.UnixNano(), 10))
	var c trace.SpanContextConfig
	sum := h.Sum(nil)
	copy(c.TraceID[:], sum)
	copy(c.SpanID[:], sum[len(c.TraceID):])
	c.TraceFlags = trace.FlagsSampled
	return trace.NewSpanContext(c)
}
