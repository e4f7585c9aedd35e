package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// The keys of W3C trace contexts, as the propagator has them.
const (
	keyTraceparent = "traceparent"
	keyTracestate  = "tracestate"
)

// remoteContext makes the message's trace the parent of spans.
func remoteContext(ctx context.Context, t messaging.TraceContext) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{keyTraceparent: t.Traceparent, keyTracestate: t.Tracestate})
}

// traceOf is the trace context of ctx's span.
func traceOf(ctx context.Context) messaging.TraceContext {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return messaging.TraceContext{Traceparent: carrier[keyTraceparent], Tracestate: carrier[keyTracestate]}
}

// spanAttributes describe an attempt on a slot.
func (r *run) spanAttributes(a *messaging.Assignment, slot int) trace.SpanStartEventOption {
	return trace.WithAttributes(
		telemetry.AttrStudyID.String(a.Study),
		telemetry.AttrStudyName.String(a.StudyName),
		telemetry.AttrTrial.Int(a.Trial),
		telemetry.AttrAttempt.Int(a.Attempt),
		telemetry.AttrWorker.String(r.options.Name),
		telemetry.AttrPool.String(r.options.Pool),
		telemetry.AttrSlot.Int(slot),
	)
}

func outcomeAttribute(o messaging.Outcome) attribute.KeyValue {
	return telemetry.AttrOutcome.String(string(o))
}
