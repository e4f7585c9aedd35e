package fantasia

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/internal/library"
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
	return s.run(ctx, func(ctx context.Context, t *Trial) (library.Measured, error) {
		value, err := objective(ctx, t)
		return measured(value), err
	})
}

// evaluation evaluates a trial.
type evaluation func(ctx context.Context, t *Trial) (library.Measured, error)

// run is Run with several values.
func (s *Study) run(ctx context.Context, evaluate evaluation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range s.parallel {
		all.Go(func() {
			if err := s.work(ctx, evaluate); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err, ended := s.binding.Outcome(); ended {
		return err
	}
	return context.Cause(ctx)
}

// work evaluates one trial after the other.
func (s *Study) work(ctx context.Context, evaluate evaluation) error {
	t, err := s.Ask(ctx)
	for err == nil {
		found, failed := s.evaluate(ctx, t, evaluate)
		t, err = s.trial(s.binding.Turn(ctx, t.held, found, failed))
	}
	if errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

// evaluate evaluates a trial with the trial's own context and span.
func (s *Study) evaluate(ctx context.Context, t *Trial, evaluate evaluation) (library.Measured, error) {
	of, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	of, span := s.tracer.Start(of, "evaluate", trace.WithAttributes(attribute.Int("fantasia.trial.number", t.Number())))
	defer span.End()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-t.held.Over():
			cancel(t.held.Ended())
		case <-ended:
		}
	}()
	found, err := evaluate(of, t)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrInfeasible) {
		err = fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	switch {
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
	case len(found.Values) == 1:
		span.SetAttributes(attribute.Float64("fantasia.trial.value", found.Values.First()))
	default:
		span.SetAttributes(attribute.Float64Slice("fantasia.trial.values", found.Values))
	}
	return found, err
}
