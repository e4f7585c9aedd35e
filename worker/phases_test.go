package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// staged is an evaluator whose program had to wait for a node.
type staged struct{ evaluation.Evaluator }

func (staged) Accept(*messaging.Assignment) error { return nil }
func (staged) Close(context.Context) error        { return nil }
func (staged) Evaluate(context.Context, evaluation.Task) evaluation.Ending {
	start := time.Now()
	time.Sleep(20 * time.Second)
	e := evaluation.Valued(assigned(1).Objectives(), study.Values{1})
	e.Stages = &messaging.Stages{Created: start.Add(time.Second), Scheduled: start.Add(8 * time.Second),
		Prepared: start.Add(9 * time.Second), Started: start.Add(12 * time.Second), Ended: start.Add(19 * time.Second)}
	e.Attributes = []attribute.KeyValue{attribute.String("k8s.job.name", "job-1")}
	return e
}

// The phases of a Job are spans of their own inside the evaluation's, and its result says its stages.
func TestPhasesAreSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		defer provider.Shutdown(context.Background())
		r := newRig(t, nil, membus.Options{})
		r.options.Tracer = provider.Tracer("test")
		r.options.NewEvaluator = func(int) (evaluation.Evaluator, error) { return staged{}, nil }
		leave := r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		leave()
		synctest.Wait()
		byName := map[string]sdktrace.ReadOnlySpan{}
		for _, span := range spans.Ended() {
			byName[span.Name()] = span
		}
		evaluate := byName[telemetry.SpanEvaluate]
		next := evaluate.StartTime()
		for _, want := range []struct {
			name    string
			seconds float64
		}{
			{messaging.PhaseAdmit, 1}, {messaging.PhaseSchedule, 7}, {messaging.PhasePrepare, 1}, {messaging.PhaseStart, 3},
			{messaging.PhaseRun, 7}, {messaging.PhaseFinish, 1},
		} {
			span := byName[want.name]
			if span == nil {
				t.Fatalf("no span %q", want.name)
			}
			if took := span.EndTime().Sub(span.StartTime()).Seconds(); took != want.seconds || !span.StartTime().Equal(next) {
				t.Errorf("%s begins at %v and takes %v s, want %v and %v s", want.name, span.StartTime(), took, next, want.seconds)
			}
			next = span.EndTime()
			if span.Parent().SpanID() != evaluate.SpanContext().SpanID() {
				t.Errorf("span %s is not inside the evaluation's", want.name)
			}
			for _, s := range []sdktrace.ReadOnlySpan{span, evaluate} {
				set := attribute.NewSet(s.Attributes()...)
				if job, _ := set.Value("k8s.job.name"); job.AsString() != "job-1" || !set.HasValue(telemetry.AttrTrial) {
					t.Errorf("span %s has the attributes %v", s.Name(), s.Attributes())
				}
			}
		}
		if !next.Equal(evaluate.EndTime()) {
			t.Errorf("the last phase ends at %v, the evaluation at %v", next, evaluate.EndTime())
		}
		if s := r.seen().results[0].Stages; s == nil || s.Ended.Sub(s.Started) != 7*time.Second {
			t.Errorf("the result has the stages %+v", s)
		}
	})
}
