// Package spans emits the leader's part of the traces: how a trial came from the optimiser to its
// worker and back, and how long requests to the optimiser took.
package spans

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// Spans emits the leader's spans. Safe for concurrent use, once SetEpoch was called.
type Spans struct {
	tracer trace.Tracer
	shard  string
	epoch  int64
	exported
}

// New returns the spans of one term.
func New(tracer trace.Tracer, shard string) *Spans { return &Spans{tracer: tracer, shard: shard} }

// SetEpoch sets the term's epoch, which some spans name.
func (x *Spans) SetEpoch(epoch int64) { x.epoch = epoch }

// recallWithin bounds which trials Recall covers: those folded within this time before
// the earlier leader's last fold. It is twice the time that spans wait for their
// export, so a killed leader had exported the spans of all older trials.
const recallWithin = 2 * time.Second

// Recall emits the spans of the trials that an earlier leader folded last, without those
// that it is known to have exported: they were folded until sent. It may have exported
// others in the moment before it was killed. A backend then receives spans with the same
// ids again.
func (x *Spans) Recall(ctx context.Context, s *record.Study, trials []record.Trial, sent time.Time) {
	var last time.Time
	for i := range trials {
		if at := trials[i].Times.Folded; at.After(last) {
			last = at
		}
	}
	for i := range trials {
		if at := trials[i].Times.Folded; at.After(sent) && last.Sub(at) < recallWithin {
			x.Trial(ctx, s, &trials[i], at)
		}
	}
}

// Trial emits the spans of an ended trial and returns the context of their root. folded is
// when the trial's result became durable. The spans' ids and times come from the ledger, so the
// leader that ends the trial can emit all of them. A span that an earlier leader had kept open
// would have died with it.
func (x *Spans) Trial(ctx context.Context, s *record.Study, t *record.Trial, folded time.Time) context.Context {
	traceID, errTrace := trace.TraceIDFromHex(t.TraceID)
	spanID, errSpan := trace.SpanIDFromHex(t.SpanID)
	if errTrace == nil && errSpan == nil {
		ctx = telemetry.WithSpan(ctx, traceID, spanID)
	}
	begun := cmp.Or(t.Times.Asked, t.Times.Suggested, t.Times.Created)
	ctx, root := x.tracer.Start(ctx, telemetry.SpanTrial, trace.WithNewRoot(), trace.WithTimestamp(begun))
	if root.IsRecording() {
		x.add(root.SpanContext().SpanID(), cmp.Or(t.Times.Folded, folded))
		describe(root, s, t)
		(&way{ctx: ctx, tracer: x.tracer, shard: x.shard, study: s, trial: t, at: begun}).emit(folded, x.epoch)
	}
	root.End(trace.WithTimestamp(folded))
	return ctx
}

// describe sets the attributes and the status of a trial's root span.
func describe(root trace.Span, s *record.Study, t *record.Trial) {
	root.SetAttributes(
		telemetry.AttrStudyID.String(s.ID), telemetry.AttrStudyName.String(s.Definition.Metadata.Name),
		telemetry.AttrPool.String(s.Definition.Spec.Pool),
		telemetry.AttrTrial.Int(t.Number), telemetry.AttrTrialState.String(string(t.State)),
		telemetry.AttrSource.String(string(t.Source)), telemetry.AttrStaleness.Int(t.Staleness),
		telemetry.AttrPending.Int(t.Reasons.Pending), telemetry.AttrAttempt.Int(len(t.Attempts)))
	for name, value := range t.Point {
		root.SetAttributes(attribute.String(telemetry.AttrParameter+name, fmt.Sprint(value)))
	}
	if len(t.Values) > 0 {
		root.SetAttributes(telemetry.AttrValue.Float64(t.Values.First()))
	}
	last := t.Last()
	if last == nil {
		return
	}
	root.SetAttributes(telemetry.AttrWorker.String(last.Worker))
	if last.Failure != nil && t.State != study.TrialCompleted {
		root.SetAttributes(telemetry.AttrReason.String(last.Failure.Reason))
	}
	if t.State == study.TrialFailed && last.Failure != nil {
		root.SetAttributes(semconv.ErrorTypeKey.String(last.Failure.Reason))
		root.SetStatus(codes.Error, fmt.Sprintf("%s: %.200s", last.Failure.Reason, last.Failure.Message))
	}
}

// way emits the spans of a trial one after another. Each begins where the last one
// ended, so that together with the workers' spans they cover the whole trial. Two of
// them, queue and report, begin by one machine's clock and end by another's, so they
// absorb the difference between the clocks. A span that would end before it begins
// is empty.
type way struct {
	ctx    context.Context // of the root span
	tracer trace.Tracer
	shard  string
	study  *record.Study
	trial  *record.Trial
	at     time.Time // where the last span ended
}

func (w *way) emit(folded time.Time, epoch int64) {
	t := w.trial
	w.suggest()
	for i := range t.Attempts {
		a := &t.Attempts[i]
		w.attempt(a)
		next := cmp.Or(t.Times.Folded, folded)
		if i+1 < len(t.Attempts) {
			next = t.Attempts[i+1].Opened
		}
		if a.Outcome != "" && a.Outcome != messaging.OutcomeCancelled {
			w.span(telemetry.SpanReport, a.Number, next, trace.WithAttributes(telemetry.AttrAttempt.Int(a.Number),
				telemetry.AttrOutcome.String(string(a.Outcome)), telemetry.AttrWorker.String(a.Worker)))
		}
	}
	w.span(telemetry.SpanFold, 0, folded, trace.WithAttributes(telemetry.AttrEpoch.Int64(epoch),
		semconv.MessagingSystemKey.String(telemetry.MessagingSystem), semconv.MessagingOperationTypeProcess,
		semconv.MessagingOperationName(telemetry.SpanFold)))
}

// suggest emits the spans up to the trial's creation.
func (w *way) suggest() {
	t := w.trial
	attrs := []attribute.KeyValue{
		telemetry.AttrAlgorithm.String(w.study.Definition.Spec.Algorithm.Name), telemetry.AttrSource.String(string(t.Source)),
		telemetry.AttrRequest.Int(t.Request), telemetry.AttrPending.Int(t.Reasons.Pending),
	}
	if t.Reasons.Mean != nil {
		attrs = append(attrs, telemetry.AttrMean.Float64(*t.Reasons.Mean))
	}
	if t.Reasons.SD != nil {
		attrs = append(attrs, telemetry.AttrSD.Float64(*t.Reasons.SD))
	}
	if t.Reasons.Note != "" {
		attrs = append(attrs, telemetry.AttrNote.String(t.Reasons.Note))
	}
	for name, value := range t.Reasons.Acquisition {
		attrs = append(attrs, attribute.Float64(telemetry.AttrAcquisition+name, value))
	}
	w.span(telemetry.SpanSuggest, 0, t.Times.Suggested, trace.WithAttributes(attrs...),
		trace.WithLinks(trace.Link{SpanContext: telemetry.RefitSpan(w.study.ID, t.Request, t.Times.Asked)}))
	if t.Times.Created.After(w.at) {
		w.span(telemetry.SpanReady, 0, t.Times.Created)
	}
}

// attempt emits the spans of an attempt's way to its worker. It skips the time for
// which the worker emits spans itself. If the worker was lost, attempt emits a span
// for that time, since nobody else can.
func (w *way) attempt(a *record.Attempt) {
	number := telemetry.AttrAttempt.Int(a.Number)
	claimed := cmp.Or(a.Claimed, a.Started)
	published := a.Published
	if !claimed.IsZero() && published.After(claimed) {
		published = claimed // its acknowledgement came after the claim
	}
	if !published.IsZero() {
		w.span(telemetry.SpanCommit, a.Number, a.Committed, trace.WithAttributes(number))
		id := messaging.AttemptID{Study: w.study.ID, Trial: w.trial.Number, Attempt: a.Number}
		subject := messaging.Subject{Kind: messaging.KindAssign, Shard: w.shard, Pool: w.study.Definition.Spec.Pool, ID: id}
		w.span(telemetry.SpanPublish, a.Number, published, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(number,
			semconv.MessagingSystemKey.String(telemetry.MessagingSystem), semconv.MessagingDestinationName(subject.String()),
			semconv.MessagingOperationTypeSend, semconv.MessagingOperationName(telemetry.SpanPublish)))
	}
	w.span(telemetry.SpanQueue, a.Number, cmp.Or(claimed, a.Ended), trace.WithAttributes(number,
		telemetry.AttrPool.String(w.study.Definition.Spec.Pool), telemetry.AttrWorker.String(a.Worker)))
	if a.State == study.AttemptLost {
		_, span := w.start(telemetry.SpanLost, a.Number, trace.WithAttributes(number, telemetry.AttrWorker.String(a.Worker),
			semconv.ErrorTypeKey.String(string(study.AttemptLost))))
		if a.Failure != nil {
			span.SetStatus(codes.Error, a.Failure.Message)
		}
		span.End(trace.WithTimestamp(a.Ended))
	}
	w.at = cmp.Or(a.Ended, w.at)
}

func (w *way) start(name string, attempt int, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx := telemetry.WithChild(w.ctx, telemetry.ChildID(trace.SpanContextFromContext(w.ctx).TraceID(), name, attempt))
	return w.tracer.Start(ctx, name, append(options, trace.WithTimestamp(w.at))...)
}

// span emits a span from the end of the last one to a time; none if that is zero.
func (w *way) span(name string, attempt int, to time.Time, options ...trace.SpanStartOption) {
	if to.IsZero() {
		return
	}
	if to.Before(w.at) {
		w.at = to
	}
	_, span := w.start(name, attempt, options...)
	span.End(trace.WithTimestamp(to))
	w.at = to
}
