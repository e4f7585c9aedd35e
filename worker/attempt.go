package worker

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// evaluate runs a claimed attempt and hands its result to the sender.
func (r *run) evaluate(ctx context.Context, slot int, ev evaluation.Evaluator, a *messaging.Assignment) {
	log := r.options.Logger.With(telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt)
	log.Debug("evaluation started", "slot", slot)
	result := &messaging.Result{
		Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Worker: r.options.Name, Started: time.Now(),
	}
	e := r.evaluation(ctx, slot, ev, a)
	result.Ended = time.Now()
	fill(result, e)
	if _, err := messaging.Encode(result); err != nil {
		// It could never be published, and would be tried for ever.
		log.Error("an evaluation has a result that cannot be sent", telemetry.LogError, err)
		e = evaluation.Failed(evaluation.ReasonInvalid, err.Error())
		fill(result, e)
	}
	log.Debug("evaluation ended", "outcome", e.Outcome, "seconds", result.Ended.Sub(result.Started).Seconds())
	r.metrics.ended(ctx, e.Outcome)
	if e.Outcome == messaging.OutcomeCancelled {
		return // the leader wanted no result
	}
	reporting, span := r.options.Tracer.Start(ctx, telemetry.SpanReport, r.spanAttributes(a, slot))
	span.SetAttributes(outcomeAttribute(e.Outcome))
	result.TraceContext = traceOf(reporting)
	r.sender.add(result, span)
}

func fill(r *messaging.Result, e evaluation.Ending) {
	r.Outcome, r.Value, r.Metrics = e.Outcome, e.Value, e.Metrics
	r.Failure, r.Checkpoint, r.Logs = e.Failure, e.Checkpoint, e.Logs
}

// evaluation runs the attempt in its span, within its timeout.
func (r *run) evaluation(ctx context.Context, slot int, ev evaluation.Evaluator, a *messaging.Assignment) evaluation.Ending {
	if cause := evaluation.Stopped(ctx); cause != nil { // while it was claimed
		e := evaluation.StopEnding(cause)
		e.Checkpoint = a.Checkpoint
		return e
	}
	ctx, span := r.options.Tracer.Start(ctx, telemetry.SpanEvaluate, r.spanAttributes(a, slot))
	defer span.End()
	if timeout := time.Duration(a.Run.Timeout); timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, timeout, evaluation.ErrTimeout)
		defer cancel()
		ctx = limited
	}
	job := evaluation.Job{Assignment: a, Worker: r.options.Name, Slot: slot, Trace: traceOf(ctx), Kill: r.hard.Done()}
	m := newMeasurer(ctx, r.options.Bus, r.options.Logger)
	job.Measure = func(step int64, metrics map[string]float64) {
		m.add(&messaging.Measurement{
			Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Worker: r.options.Name,
			Step: step, Metrics: metrics, At: time.Now(), TraceContext: job.Trace,
		})
	}
	e := ev.Evaluate(ctx, job)
	m.finish()
	span.SetAttributes(outcomeAttribute(e.Outcome))
	if e.Value != nil {
		span.SetAttributes(telemetry.AttrValue.Float64(*e.Value))
	}
	if f := e.Failure; f != nil && e.Outcome != messaging.OutcomeHandedBack {
		span.SetStatus(codes.Error, fmt.Sprintf("%s: %.200s", f.Reason, f.Message))
	}
	return e
}
