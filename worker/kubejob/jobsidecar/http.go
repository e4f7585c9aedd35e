package jobsidecar

import (
	"context"
	"errors"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/sidecar"
)

// serve serves the pod's single attempt to the program over HTTP, as `worker sidecar`
// does, until the caller calls stop because the program has ended.
func (s *server) serve(ctx context.Context) (stop func() error, err error) {
	if s.options.Listen == "" {
		return func() error { return nil }, nil
	}
	front, err := sidecar.New(sidecar.Options{Slots: 1, Leave: func() {}, Logger: s.options.Logger})
	if err != nil {
		return nil, err
	}
	listener, err := sidecar.Listen(ctx, s.options.Listen)
	if err != nil {
		return nil, err
	}
	evaluator, err := front.Evaluator(0)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = front.Serve(ctx, listener) })
	running.Go(func() { s.offer(ctx, front, evaluator) })
	return func() error {
		front.HandBack()
		front.Terminate() // whoever still asks has ended
		cancel()
		running.Wait()
		return failed
	}, nil
}

// offer gives the attempt to the program once, when it asks.
func (s *server) offer(ctx context.Context, front *sidecar.Sidecar, evaluator evaluation.Evaluator) {
	gate, ok := evaluator.(evaluation.Gate)
	for ok {
		wanted, stop, err := gate.Await(ctx)
		if err != nil {
			return
		}
		stop()
		if wanted.Err() != nil && ctx.Err() != nil {
			return
		}
		taken := false
		task := evaluation.Task{
			Assignment: s.options.Attempt.Assignment, Slot: s.options.Attempt.Slot, Kill: ctx.Done(),
			Trace: messaging.TraceContext{Traceparent: s.options.Attempt.Traceparent, Tracestate: s.options.Attempt.Tracestate},
		}
		task.Measure = func(step int64, metrics map[string]float64) {
			taken = true
			s.addReports([]report.Report{{Step: &step, Metrics: metrics}}, nil)
		}
		e := evaluator.Evaluate(ctx, task)
		if e.Outcome == messaging.OutcomeHandedBack && e.Failure.Reason == messaging.ReasonClient && !taken {
			continue // it asked without waiting for the answer
		}
		if ctx.Err() == nil {
			s.ended(e)
		}
		if e.Checkpoint != "" && e.Checkpoint != s.options.Attempt.Assignment.Checkpoint {
			s.addReports([]report.Report{{Checkpoint: e.Checkpoint}}, nil)
		}
		front.HandBack() // there are no other trials
		break
	}
	if err := evaluator.Close(ctx); err != nil {
		s.options.Logger.Warn("cannot record the attempt's end", telemetry.LogError, err)
	}
}

// ended reports how the program ended the attempt.
func (s *server) ended(e evaluation.Ending) {
	if e.Failure == nil {
		return // its value was measured
	}
	r := report.Report{}
	switch e.Outcome {
	case messaging.OutcomeInfeasible:
		r.Infeasible = &e.Failure.Message
	case messaging.OutcomeHandedBack:
		r.Retry = &e.Failure.Message
	default:
		r.Error = &e.Failure.Message
	}
	s.addReports([]report.Report{r}, nil)
}
