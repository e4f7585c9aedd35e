// Package evaluation is the contract between a worker's slots and whatever
// evaluates a trial: a child process, or a Go function.
package evaluation

import (
	"context"
	"errors"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// The causes of an evaluation's end before its time, found with Stopped.
var (
	// ErrTimeout says that the attempt ran longer than its study allows.
	ErrTimeout = errors.New("the attempt ran longer than its timeout")
	// ErrCancelled says that the attempt's result is wanted no more.
	ErrCancelled = errors.New("the attempt was cancelled")
	// ErrLeaving says that the worker leaves and hands the attempt back.
	ErrLeaving = errors.New("the worker is leaving")
)

// Job is one attempt to evaluate.
type Job struct {
	Assignment *messaging.Assignment
	Worker     string
	// Slot counts from 0.
	Slot int
	// Trace is the context of the evaluation's span, for the program.
	Trace messaging.TraceContext
	// Measure reports metrics, all finite, while the evaluation runs. It does
	// not block and is safe for concurrent use until Evaluate returns. Programs
	// are run without where it is nil.
	Measure func(step int64, metrics map[string]float64)
	// Kill is closed when no more grace can be given; nil never is.
	Kill <-chan struct{}
}

// Ending is how an evaluation ended. The fields are those of messaging.Result, but
// for Kept.
type Ending struct {
	// Kept says that the evaluation goes on without its worker, for the next process
	// of the same name to recover: it has no result yet.
	Kept       bool
	Outcome    messaging.Outcome
	Values     study.Values
	Metrics    map[string]float64
	Failure    *messaging.Failure
	Checkpoint string
	Logs       string
}

// Evaluator evaluates one attempt at a time; each slot has its own. Its methods
// are not called concurrently. An ending that Evaluate has returned is on disk
// when the next of them is called.
type Evaluator interface {
	// Accept says why the assignment cannot be evaluated here; nil where it can.
	Accept(a *messaging.Assignment) error
	// Evaluate runs the attempt to its end. Where ctx ends before that, it stops
	// the attempt within the study's grace and says so in the ending.
	Evaluate(ctx context.Context, job Job) Ending
	// Close ends what is kept between attempts, gracefully until ctx ends.
	Close(ctx context.Context) error
}

// Gate is an Evaluator whose slot is to take attempts at times only.
type Gate interface {
	Evaluator
	// Await waits until the slot shall take an attempt, or ctx ends, which is its
	// error. The context that it returns is ctx that also ends when the slot
	// shall take none any more; stop is called once the slot has one, or none.
	Await(ctx context.Context) (wanted context.Context, stop func(), err error)
}

// Keeper knows evaluations that outlive the worker's process. Its methods are
// safe for concurrent use.
type Keeper interface {
	// Recover returns the attempts that an earlier process of this worker has
	// claimed and begun, and that an Evaluator goes on with when it is given them.
	Recover(ctx context.Context) ([]Recovered, error)
	// Settle notes that an attempt's result is on the worker's disk: it need not
	// be recovered.
	Settle(ctx context.Context, a *messaging.Assignment) error
}

// Recovered is an attempt that was begun by an earlier process.
type Recovered struct {
	Assignment *messaging.Assignment
	Started    time.Time
}

// Stopped returns ErrTimeout, ErrCancelled or ErrLeaving where that ended ctx;
// nil while it has not ended. A context that ended otherwise counts as leaving.
func Stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	for _, known := range []error{ErrTimeout, ErrCancelled, ErrLeaving} {
		if errors.Is(cause, known) {
			return known
		}
	}
	return ErrLeaving
}

// StopEnding is the ending of an evaluation that was stopped for a cause that
// Stopped returned.
func StopEnding(cause error) Ending {
	switch {
	case errors.Is(cause, ErrTimeout):
		return Ending{Outcome: messaging.OutcomeTimeout, Failure: &messaging.Failure{Reason: messaging.ReasonTimeout, Message: cause.Error()}}
	case errors.Is(cause, ErrCancelled):
		return Ending{Outcome: messaging.OutcomeCancelled, Failure: &messaging.Failure{Reason: messaging.ReasonCancelled, Message: cause.Error()}}
	default:
		return Ending{Outcome: messaging.OutcomeHandedBack, Failure: &messaging.Failure{Reason: messaging.ReasonLeaving, Message: cause.Error()}}
	}
}
