package worker

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// evaluate runs a claimed attempt and hands its result to the sender. The attempt was
// claimed and started at the given times; an earlier process may have started it.
func (r *run) evaluate(ctx context.Context, slot int, ev evaluation.Evaluator, a *messaging.Assignment, claimed, started time.Time) {
	log := r.options.Logger.With(telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt)
	log.Debug("evaluation started", "slot", slot)
	result := &messaging.Result{
		Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Worker: r.options.Name, Claimed: claimed, Started: started,
	}
	evaluating, span := r.options.Tracer.Start(ctx, telemetry.SpanEvaluate, trace.WithTimestamp(started), r.spanAttributes(a, slot))
	e := r.evaluation(evaluating, slot, ev, a, started)
	if e.Kept {
		log.Info("leaving an attempt to the next process")
		return // the next process ends its span
	}
	result.Ended = time.Now()
	conclude(span, e)
	r.phaseSpans(evaluating, slot, a, e, e.Stages.Phases(started, result.Ended))
	span.End(trace.WithTimestamp(result.Ended))
	fill(result, e)
	result.Site = r.site(slot, ev, a).With(e.Site)
	if _, err := messaging.Encode(result); err != nil {
		// It could never be published, and would be retried forever.
		log.Error("the result of an evaluation cannot be sent", telemetry.LogError, err)
		e = evaluation.Failed(messaging.ReasonInvalid, err.Error())
		fill(result, e)
	}
	log.Debug("evaluation ended", "outcome", e.Outcome, "seconds", result.Ended.Sub(result.Started).Seconds())
	r.metrics.ended(ctx, e.Outcome)
	if e.Outcome == messaging.OutcomeCancelled {
		return // the leader does not want the result
	}
	sending, span := r.sendSpan(ctx, slot, a, result)
	result.TraceContext = traceOf(sending)
	r.sender.add(result, span)
	r.markEnded(ctx, a)
}

// site returns what is known of where a slot evaluates an attempt.
func (r *run) site(slot int, ev evaluation.Evaluator, a *messaging.Assignment) messaging.Site {
	s := r.options.Site
	if slot < len(r.devices) {
		s.Devices = cmp.Or(r.devices[slot].List, s.Devices)
	}
	if sited, ok := ev.(evaluation.Sited); ok {
		s.Job = cmp.Or(sited.Job(a), s.Job)
	}
	return s
}

func fill(r *messaging.Result, e evaluation.Ending) {
	r.Outcome, r.Values, r.Metrics = e.Outcome, e.Values, e.Metrics
	r.Failure, r.Checkpoint, r.Reached, r.Logs, r.Stages = e.Failure, e.Checkpoint, e.Reached, e.Logs, e.Stages
}

// evaluation runs the attempt within its timeout; ctx has its span.
func (r *run) evaluation(
	ctx context.Context, slot int, ev evaluation.Evaluator, a *messaging.Assignment, started time.Time,
) evaluation.Ending {
	// An attempt stopped while it was claimed has not started; a keeper's evaluator
	// checks for itself.
	if cause := evaluation.Stopped(ctx); cause != nil && r.options.Keeper == nil {
		e := evaluation.StopEnding(cause)
		e.Checkpoint = a.Checkpoint
		return e
	}
	if timeout := time.Duration(a.Run.Timeout); timeout > 0 && !isTimer(ev) {
		limited, cancel := context.WithDeadlineCause(ctx, started.Add(timeout), evaluation.ErrTimeout)
		defer cancel()
		ctx = limited
	}
	task := evaluation.Task{Assignment: a, Worker: r.options.Name, Slot: slot, Trace: traceOf(ctx), Kill: r.hard.Done()}
	m := newMeasurer(r)
	task.Measure = func(step int64, metrics map[string]float64) {
		finite, diverged := report.Split(metrics)
		m.add(&messaging.Measurement{
			Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Worker: r.options.Name,
			Step: step, Metrics: finite, Diverged: diverged, At: time.Now(), TraceContext: task.Trace,
		})
	}
	task.Waiting = func(cause string) { r.registry.wait(a.AttemptID, cause) }
	if _, waits := ev.(evaluation.Sited); !waits {
		task.Waiting("") // its program starts at once
	}
	e := ev.Evaluate(ctx, task)
	m.finish()
	return e
}

// isTimer reports whether an evaluator bounds attempts by their timeout itself.
func isTimer(ev evaluation.Evaluator) bool {
	_, ok := ev.(evaluation.Timer)
	return ok
}
