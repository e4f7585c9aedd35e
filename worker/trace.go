package worker

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// The keys of W3C trace contexts, as the propagator has them.
const (
	keyTraceparent = "traceparent"
	keyTracestate  = "tracestate"
)

// remoteContext makes the message's trace the parent of new spans.
func remoteContext(ctx context.Context, t messaging.TraceContext) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{keyTraceparent: t.Traceparent, keyTracestate: t.Tracestate})
}

// traceOf returns the trace context of ctx's span.
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

// sends describes a sent message by the semantic conventions.
func (r *run) sends(kind messaging.Kind, a *messaging.Assignment, operation string) trace.SpanStartEventOption {
	subject := messaging.Subject{Kind: kind, Shard: messaging.Shard, Pool: a.Pool, Worker: r.options.Name, ID: a.AttemptID}
	return trace.WithAttributes(
		semconv.MessagingSystemKey.String(telemetry.MessagingSystem),
		semconv.MessagingDestinationName(subject.String()),
		semconv.MessagingClientID(r.options.Name),
		semconv.MessagingOperationTypeSend,
		semconv.MessagingOperationName(operation),
	)
}

// claimSpan starts the span of a claim at a given time.
func (r *run) claimSpan(ctx context.Context, slot int, a *messaging.Assignment, at time.Time) (context.Context, trace.Span) {
	return r.options.Tracer.Start(ctx, telemetry.SpanClaim, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindProducer),
		r.spanAttributes(a, slot), r.sends(messaging.KindClaim, a, telemetry.SpanClaim))
}

// sendSpan starts the span of sending a result to the broker. Its parent is the span
// that the leader emits for the report.
func (r *run) sendSpan(ctx context.Context, slot int, a *messaging.Assignment, result *messaging.Result) (context.Context, trace.Span) {
	if root := trace.SpanContextFromContext(ctx); root.IsSampled() {
		report := telemetry.ChildID(root.TraceID(), telemetry.SpanReport, a.Attempt)
		ctx = trace.ContextWithRemoteSpanContext(ctx, root.WithSpanID(report))
	}
	return r.options.Tracer.Start(ctx, telemetry.SpanSend, trace.WithTimestamp(result.Ended), trace.WithSpanKind(trace.SpanKindProducer),
		r.spanAttributes(a, slot), r.sends(messaging.KindResult, a, telemetry.SpanSend), trace.WithAttributes(outcomeAttribute(result.Outcome)))
}

// phaseSpans emits a span for each phase of an evaluation, below its span, which ctx has.
func (r *run) phaseSpans(ctx context.Context, slot int, a *messaging.Assignment, e evaluation.Ending, phases []messaging.Phase) {
	for _, p := range phases {
		_, span := r.options.Tracer.Start(ctx, p.Name, trace.WithTimestamp(p.Start), r.spanAttributes(a, slot),
			trace.WithAttributes(e.Attributes...))
		span.End(trace.WithTimestamp(p.End))
	}
}

// conclude records on an evaluation's span how it ended.
func conclude(span trace.Span, e evaluation.Ending) {
	span.SetAttributes(append(e.Attributes, outcomeAttribute(e.Outcome))...)
	if len(e.Values) > 0 {
		span.SetAttributes(telemetry.AttrValue.Float64(e.Values.First()))
	}
	f := e.Failure
	if f == nil {
		return
	}
	span.SetAttributes(telemetry.AttrReason.String(f.Reason))
	if f.ExitCode != nil {
		span.SetAttributes(semconv.ProcessExitCode(*f.ExitCode))
	}
	if e.Outcome == messaging.OutcomeFailed || e.Outcome == messaging.OutcomeTimeout {
		span.SetAttributes(semconv.ErrorTypeKey.String(f.Reason))
		span.SetStatus(codes.Error, fmt.Sprintf("%s: %.200s", f.Reason, f.Message))
	}
}
