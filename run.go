package fantasia

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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

// PanicError is what [Study.Run] panics with after an evaluation has panicked: in the goroutine that called Run,
// so that the caller can recover. By then the other evaluations have ended, what they found is kept, and
// the trial whose evaluation panicked has failed.
type PanicError struct {
	Trial int
	Value any    // that of the evaluation's panic
	Stack []byte // of the evaluation
}

// Error returns the panic's value and the evaluation's stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("the evaluation of trial %d panicked: %v\n\n%s", e.Trial, e.Value, e.Stack)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Run evaluates trials until the study has ended, Options.Parallel of them at once, and returns
// nil. If the study ends without a completed trial, or by too many failed ones, the error wraps
// ErrFailed and the last errors that the objective returned here. Called again, Run goes on with a study that
// has failed, and says so in Options.Logger: the failures so far no longer count for its end. If ctx ends first, Run waits for the
// evaluations and returns the cause; the trials that they did not finish are evaluated again by the next Run.
//
// A trial whose evaluation panics has failed; Run then waits for the other evaluations, whose context it
// ends, and panics with a [PanicError]. A trial whose evaluation ends its goroutine, as testing.T's FailNow
// does, has failed as well; the others go on, and Run's error names it.
func (s *Study) Run(ctx context.Context, objective Objective) error {
	if objective == nil {
		return errNoObjective
	}
	return s.run(ctx, func(ctx context.Context, t *Trial) (library.Measured, error) {
		value, err := objective(ctx, t)
		return measured(value), err
	})
}

var (
	errNoObjective = fmt.Errorf("%w: the function that evaluates a trial is nil", ErrInvalid)
	errExited      = errors.New("the evaluation ended its goroutine (runtime.Goexit, as testing.T.FailNow does) instead of returning")
)

// evaluation evaluates a trial.
type evaluation func(ctx context.Context, t *Trial) (library.Measured, error)

// faults are what evaluations did instead of returning. Safe for concurrent use.
type faults struct {
	mu       sync.Mutex
	panicked *PanicError // the first
	exited   error       // the first
	failures []error     // the last few with which trials failed
}

// keptFailures is how many of the errors that the objective has returned are kept: as many as the failures that end a study
// at its start.
const keptFailures = 3

// fail notes why a trial has failed.
func (f *faults) fail(err error) {
	if err == nil || errors.Is(err, ErrStopped) || errors.Is(err, ErrInfeasible) || errors.Is(err, ErrInterrupted) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures[max(0, len(f.failures)-keptFailures+1):], err)
}

// failedError says why a study has failed, and wraps what the objective returned. Its text has that of the last one.
type failedError struct {
	error
	failures []error
}

// Unwrap returns the study's error and those of the objective.
func (e *failedError) Unwrap() []error { return append([]error{e.error}, e.failures...) }

// note notes how an evaluation has ended, and returns the panic if it was one.
func (f *faults) note(trial int, err error) *PanicError {
	var p *PanicError
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, errExited) && f.exited == nil:
		f.exited = fmt.Errorf("trial %d has failed: %w", trial, err)
	case errors.As(err, &p) && f.panicked == nil:
		f.panicked = p
	}
	return p
}

// run is Run with several values.
func (s *Study) run(ctx context.Context, evaluate evaluation) error {
	if ctx == nil {
		return errNoContext
	}
	if !s.isOpen() {
		return errUnopened
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.binding.GoOn(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	var wrong faults
	for range s.parallel {
		all.Go(func() {
			if err := s.work(ctx, evaluate, &wrong); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if wrong.panicked != nil {
		panic(wrong.panicked)
	}
	err, ended := s.binding.Outcome()
	if !ended {
		err = context.Cause(ctx)
	}
	if errors.Is(err, ErrFailed) && len(wrong.failures) > 0 {
		err = &failedError{err, wrong.failures}
	}
	if wrong.exited != nil {
		return errors.Join(err, wrong.exited)
	}
	return err
}

// work evaluates one trial after the other.
func (s *Study) work(ctx context.Context, evaluate evaluation, wrong *faults) error {
	t, err := s.Ask(ctx)
	for err == nil {
		found, failed, fault := s.evaluate(ctx, t, evaluate)
		wrong.fail(failed)
		if p := wrong.note(t.Number(), fault); p != nil {
			return errors.Join(p, s.binding.Tell(t.held, found, failed))
		}
		t, err = s.trial(s.binding.Turn(ctx, t.held, found, failed))
	}
	if errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

// evaluate evaluates a trial with the trial's own context and span. fault is how it ended without returning:
// errExited or a *PanicError; nil if it returned. failed then says it in a line.
func (s *Study) evaluate(ctx context.Context, t *Trial, evaluate evaluation) (found library.Measured, failed, fault error) {
	of, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	of, span := s.tracer.Start(of, "evaluate", trace.WithAttributes(attribute.Int("fantasia.trial.number", t.Number())))
	defer span.End()
	ended := make(chan struct{})
	// A goroutine of its own, since what ends it would otherwise end this one.
	go func() {
		defer close(ended)
		fault = errExited
		defer func() {
			if v := recover(); v != nil {
				fault = &PanicError{t.Number(), v, debug.Stack()}
			}
		}()
		found, failed = evaluate(of, t)
		fault = nil
	}()
	select {
	case <-t.held.Over():
		cancel(t.held.Ended())
		<-ended
	case <-ended:
	}
	var p *PanicError
	switch {
	case errors.As(fault, &p):
		failed = fmt.Errorf("the evaluation panicked: %v", p.Value)
	case fault != nil:
		failed = fault
	case failed != nil && ctx.Err() != nil && !errors.Is(failed, ErrStopped) && !errors.Is(failed, ErrInfeasible):
		failed = fmt.Errorf("%w: %w", ErrInterrupted, failed)
	}
	switch {
	case failed != nil:
		span.SetStatus(codes.Error, failed.Error())
	case len(found.Values) == 1:
		span.SetAttributes(attribute.Float64("fantasia.trial.value", found.Values.First()))
	default:
		span.SetAttributes(attribute.Float64Slice("fantasia.trial.values", found.Values))
	}
	return found, failed, fault
}
