package coordinator

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// emit emits the leader's spans of an ended trial. Their ids and times come from
// the ledger: whichever leader folds the trial emits them, since an open span
// would have died with its process.
func (l *leader) emit(ctx context.Context, r *run, t record.Trial, folded time.Time) {
	ctx = context.WithoutCancel(ctx)
	traceID, errTrace := trace.TraceIDFromHex(t.TraceID)
	spanID, errSpan := trace.SpanIDFromHex(t.SpanID)
	if errTrace == nil && errSpan == nil {
		ctx = telemetry.WithSpan(ctx, traceID, spanID)
	}
	times := t.Times
	begun := first(times.Asked, times.Suggested, times.Created)
	ctx, root := l.c.o.Tracer.Start(ctx, telemetry.SpanTrial, trace.WithNewRoot(), trace.WithTimestamp(begun), trace.WithAttributes(
		telemetry.AttrStudyID.String(r.spec.ID), telemetry.AttrStudyName.String(r.name()),
		telemetry.AttrTrial.Int(t.Number), telemetry.AttrTrialState.String(string(t.State)),
		telemetry.AttrSource.String(string(t.Source)), telemetry.AttrStaleness.Int(t.Staleness),
		telemetry.AttrPending.Int(t.Reasons.Pending)))
	if t.Value != nil {
		root.SetAttributes(telemetry.AttrValue.Float64(*t.Value))
	}
	if last := t.Last(); t.State == study.TrialFailed && last != nil && last.Failure != nil {
		root.SetStatus(codes.Error, last.Failure.Reason)
	}
	child := func(name string, from, to time.Time, attrs ...attribute.KeyValue) {
		if from.IsZero() || to.IsZero() || to.Before(from) {
			return
		}
		_, span := l.c.o.Tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attrs...))
		span.End(trace.WithTimestamp(to))
	}
	child(telemetry.SpanSuggest, times.Asked, times.Suggested, telemetry.AttrAlgorithm.String(r.spec.Study.Spec.Algorithm.Name))
	child(telemetry.SpanCommit, times.Suggested, times.Created)
	for i := range t.Attempts {
		a := &t.Attempts[i]
		// A quick result may be read before its claim: the start is as good.
		child(telemetry.SpanQueue, a.Opened, first(a.Claimed, a.Started), telemetry.AttrAttempt.Int(a.Number), telemetry.AttrWorker.String(a.Worker))
	}
	child(telemetry.SpanFold, first(times.Ended, times.Folded), folded, telemetry.AttrEpoch.Int64(l.term.Epoch))
	root.End(trace.WithTimestamp(folded))
	// A histogram's exemplar leads from a slow trial to its trace.
	l.c.metrics.ended(ctx, r, &t, folded)
}

// first returns the first time that is set.
func first(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
