package telemetry

import (
	"context"
	"crypto/rand"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

type spanIDKey struct{}

// WithSpan makes the next span that is started under the returned context the
// root with exactly this trace id and span id: the ids were drawn when the trial
// was suggested and handed to others before the span could end.
func WithSpan(ctx context.Context, traceID trace.TraceID, spanID trace.SpanID) context.Context {
	return context.WithValue(ctx, spanIDKey{}, trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID}))
}

// IDGenerator returns the generator that WithSpan needs of a tracer provider; the
// one that Setup makes has it.
func IDGenerator() sdktrace.IDGenerator { return idGenerator{} }

// idGenerator draws ids at random unless WithSpan has set them.
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
func (idGenerator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var spanID trace.SpanID
	rand.Read(spanID[:]) // never fails: see crypto/rand
	return spanID
}

// RemoteSpan returns a context whose parent is a span of another process.
func RemoteSpan(ctx context.Context, traceID trace.TraceID, spanID trace.SpanID) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}
