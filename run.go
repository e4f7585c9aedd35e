package fantasia

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Objective evaluates a trial and returns its value. ctx ends when that of [Study.Run] does, and
// when the trial's result is no longer wanted. A value that is not finite counts as
// [ErrInfeasible]. An error counts as a failure, unless it wraps [ErrInfeasible], [ErrStopped] or
// [ErrInterrupted], or ctx has ended. With Options.Parallel above 1 it is called concurrently.
type Objective func(ctx context.Context, t *Trial) (float64, error)

// Run evaluates trials until the study has ended, Options.Parallel of them at once, and returns
// nil. If the study ends without a completed trial, or by too many failed ones, the error wraps
// ErrFailed. If ctx ends first, Run waits for the evaluations and returns the cause; the trials that
// they did not finish are evaluated again by the next Run.
func (s *Study) Run(ctx context.Context, objective Objective) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range s.parallel {
		all.Go(func() {
			if err := s.work(ctx, objective); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err, ended := s.lead.outcome(); ended {
		return err
	}
	return context.Cause(ctx)
}

// work evaluates one trial after the other.
func (s *Study) work(ctx context.Context, objective Objective) error {
	for {
		t, err := s.Ask(ctx)
		if errors.Is(err, ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		value, err := s.evaluate(ctx, t, objective)
		if err := s.Tell(t, value, err); err != nil && !errors.Is(err, ErrEnded) {
			return err
		}
	}
}

// evaluate calls the objective with the trial's own context and span.
func (s *Study) evaluate(ctx context.Context, t *Trial, objective Objective) (float64, error) {
	of, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	of, span := s.tracer.Start(of, "evaluate", trace.WithAttributes(attribute.Int("fantasia.trial.number", t.number)))
	defer span.End()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-t.over:
			cancel(t.why)
		case <-ended:
		}
	}()
	value, err := objective(of, t)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrInfeasible) {
		err = fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	if err == nil {
		span.SetAttributes(attribute.Float64("fantasia.trial.value", value))
	} else {
		span.SetStatus(codes.Error, err.Error())
	}
	return value, err
}
