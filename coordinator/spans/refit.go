package spans

import (
	"context"
	"errors"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// maxLinks bounds how many trials a refit's span is linked to; the latest are kept.
// It is OpenTelemetry's default limit.
const maxLinks = 128

// Refit starts the span of a request to a study's optimiser, with links to the trials whose
// observations are new since the last request: those that ended after a position of the ledger.
// trial looks a trial up.
func (x *Spans) Refit(ctx context.Context, s *record.Study, ask *engine.Ask, after int64,
	trial func(int) (record.Trial, bool)) (context.Context, trace.Span) {
	own := telemetry.RefitSpan(s.ID, ask.Request, ask.At)
	ctx = telemetry.WithSpan(ctx, own.TraceID(), own.SpanID())
	ctx, span := x.tracer.Start(ctx, telemetry.SpanRefit, trace.WithNewRoot(), trace.WithTimestamp(ask.At))
	if !span.IsRecording() {
		return ctx, span
	}
	folded := 0
	for i := len(ask.Problem.Observations) - 1; i >= 0; i-- {
		t, ok := trial(ask.Problem.Observations[i].Trial)
		if !ok {
			continue // told by a user, not asked for
		}
		if t.Ended <= after {
			break
		}
		folded++
		if folded <= maxLinks {
			link(span, t.TraceID, t.SpanID)
		}
	}
	span.SetAttributes(telemetry.AttrStudyID.String(s.ID), telemetry.AttrStudyName.String(s.Definition.Metadata.Name),
		telemetry.AttrAlgorithm.String(s.Definition.Spec.Algorithm.Name), telemetry.AttrRequest.Int(ask.Request),
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

// Refitted ends a refit's span.
func Refitted(span trace.Span, err error) {
	if err != nil && !errors.Is(err, optimizer.ErrExhausted) && !errors.Is(err, context.Canceled) {
		span.SetAttributes(semconv.ErrorTypeOther)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
