package coordinator

import (
	"context"
	"errors"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// maxLinks bounds how many trials a refit's span is linked to; the latest are kept.
// It is OpenTelemetry's default limit.
const maxLinks = 128

// refit starts the span of a request to the optimiser, with links to the trials whose
// observations are new since the last request. Only the loop calls it.
func (x *traces) refit(ctx context.Context, r *run, ask *engine.Ask) (context.Context, trace.Span) {
	own := telemetry.RefitSpan(r.spec.ID, ask.Request, ask.At)
	ctx = telemetry.WithSpan(ctx, own.TraceID(), own.SpanID())
	ctx, span := x.tracer.Start(ctx, telemetry.SpanRefit, trace.WithNewRoot(), trace.WithTimestamp(ask.At))
	known := r.fitted
	r.fitted = ask.From
	if !span.IsRecording() {
		return ctx, span
	}
	folded := 0
	for i := len(ask.Problem.Observations) - 1; i >= 0; i-- {
		t, ok := r.engine.Trial(ask.Problem.Observations[i].Trial)
		if !ok {
			continue // told by a user, not asked for
		}
		if t.Ended <= known {
			break
		}
		folded++
		if folded <= maxLinks {
			link(span, t.TraceID, t.SpanID)
		}
	}
	span.SetAttributes(telemetry.AttrStudyID.String(r.spec.ID), telemetry.AttrStudyName.String(r.name()),
		telemetry.AttrAlgorithm.String(r.spec.Definition.Spec.Algorithm.Name), telemetry.AttrRequest.Int(ask.Request),
		telemetry.AttrSuggestions.Int(ask.N), telemetry.AttrPending.Int(len(ask.Problem.Pending)),
		telemetry.AttrObservations.Int(ask.Observed()), telemetry.AttrFolded.Int(folded),
		telemetry.AttrEpoch.Int64(x.epoch))
	return ctx, span
}

// link links a span to a trial's root.
func link(span trace.Span, traceID, spanID string) {
	t, errTrace := trace.TraceIDFromHex(traceID)
	s, errSpan := trace.SpanIDFromHex(spanID)
	if errTrace == nil && errSpan == nil {
		span.AddLink(trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: t, SpanID: s, TraceFlags: trace.FlagsSampled, Remote: true,
		})})
	}
}

// refitted ends a refit's span.
func refitted(span trace.Span, err error) {
	if err != nil && !errors.Is(err, optimizer.ErrExhausted) && !errors.Is(err, context.Canceled) {
		span.SetAttributes(semconv.ErrorTypeOther)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// fittedBefore returns the ledger position of the observations behind the last answer
// of the optimiser that a loaded study has used.
func fittedBefore(e *engine.Engine) int64 {
	for n := e.Status().Trials; n > 0; n-- {
		if t, ok := e.Trial(n); ok && t.Source != optimizer.SourceFallback {
			return t.From
		}
	}
	return 0
}
