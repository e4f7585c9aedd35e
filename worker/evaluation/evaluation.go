// Package evaluation is the contract between a worker's slots and what evaluates a
// trial: a child process, or a Go function.
package evaluation

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// The causes for stopping an evaluation, as returned by Stopped.
var (
	// ErrTimeout means that the attempt ran longer than its study allows.
	ErrTimeout = errors.New("the attempt ran longer than its timeout")
	// ErrCancelled means that the attempt's result is no longer needed.
	ErrCancelled = errors.New("the attempt was cancelled")
	// ErrPruned means that the leader stops the trial early.
	ErrPruned = errors.New("the trial is stopped early")
	// ErrLeaving means that the worker leaves and hands the attempt back.
	ErrLeaving = errors.New("the worker is leaving")
)

// Task is an attempt to evaluate.
type Task struct {
	Assignment *messaging.Assignment
	Worker     string
	// Slot counts from 0.
	Slot int
	// Trace is the context of the evaluation's span, for the program.
	Trace messaging.TraceContext
	// Measure reports metrics while the evaluation runs. A value that is not finite means
	// that the evaluation diverged. It does not block, and is safe for concurrent use until
	// Evaluate returns. It may be nil.
	Measure func(step int64, metrics map[string]float64)
	// Matched is called with each line in which the study's pattern finds metrics, and with the names and
	// values that were read, for people. It may be nil.
	Matched func(line string, read map[string]float64)
	// Waiting says why the program has not started yet; an empty text says that it has. It is
	// safe for concurrent use until Evaluate returns. It may be nil.
	Waiting func(cause string)
	// Kill is closed when the grace is over; a nil channel never is.
	Kill <-chan struct{}
}

// ErrJob means that a worker does not create the Jobs that studies bring.
var ErrJob = errors.New("the study's trials are Jobs of Kubernetes (spec.trial.job), which this worker does not " +
	"create: give the study a pool of kubeworker")

// Ending describes how an evaluation ended. The fields except Kept are those of
// messaging.Result.
type Ending struct {
	// Kept means that the evaluation continues without its worker and has no result
	// yet; the next process of the same name recovers it.
	Kept       bool
	Outcome    messaging.Outcome
	Values     study.Values
	Metrics    map[string]float64
	Failure    *messaging.Failure
	Checkpoint string
	Reached    *messaging.Reached
	Logs       string
	// Site is where the attempt ran, as far as the evaluator knows.
	Site messaging.Site
	// Stages are when the attempt passed each stage before and after its program; nil if its program was started
	// at once.
	Stages *messaging.Stages
	// Attributes describe on the evaluation's span where the attempt ran, by OpenTelemetry's semantic conventions.
	Attributes []attribute.KeyValue
}

// Sited is an Evaluator that knows in advance in which job it evaluates an attempt.
type Sited interface {
	Evaluator
	// Job returns the job's name; empty if it is not known.
	Job(a *messaging.Assignment) string
}

// Evaluator evaluates one attempt at a time; each slot has its own. Its methods are not
// called concurrently. When a method is called, the ending of the previous Evaluate is
// on disk.
type Evaluator interface {
	// Accept returns why the assignment cannot be evaluated here, or nil.
	Accept(a *messaging.Assignment) error
	// Evaluate runs the attempt to its end. If ctx ends first, it stops the attempt
	// within the study's grace and returns an ending that says so.
	Evaluate(ctx context.Context, task Task) Ending
	// Close ends what is kept between attempts, gracefully until ctx ends.
	Close(ctx context.Context) error
}

// Gate is an Evaluator whose slot takes attempts only at certain times.
type Gate interface {
	Evaluator
	// Await waits until the slot should take an attempt; if ctx ends, it returns ctx's
	// error. The returned context is derived from ctx and also ends when the slot
	// should no longer take one. The caller MUST call stop once the slot has an
	// attempt, or none.
	Await(ctx context.Context) (wanted context.Context, stop func(), err error)
}

// Timer is an Evaluator whose attempts can wait for long before their program starts. It ends
// an attempt itself, as ErrTimeout, when its program has run for the study's timeout.
type Timer interface {
	Evaluator
	TimesOut()
}

// Keeper manages evaluations that outlive the worker's process. Its methods are safe
// for concurrent use.
type Keeper interface {
	// Recover returns the attempts that an earlier process of this worker has claimed
	// and started, and that an Evaluator can resume.
	Recover(ctx context.Context) ([]Recovered, error)
	// MarkEnded records that an attempt's result is on the worker's disk, so that it need
	// not be recovered.
	MarkEnded(ctx context.Context, a *messaging.Assignment) error
	// MarkStored records that the leader has stored an attempt's result. It may be called before MarkEnded.
	MarkStored(ctx context.Context, id messaging.AttemptID) error
}

// Recovered is an attempt that an earlier process started.
type Recovered struct {
	Assignment *messaging.Assignment
	Started    time.Time
}

// Stopped returns ErrTimeout, ErrCancelled, ErrPruned or ErrLeaving if that ended ctx, and nil if
// ctx has not ended. Any other cause counts as leaving.
func Stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	for _, known := range []error{ErrTimeout, ErrCancelled, ErrPruned, ErrLeaving} {
		if errors.Is(cause, known) {
			return known
		}
	}
	return ErrLeaving
}

// StopEnding returns the ending of an evaluation stopped for a cause that Stopped
// returned. The caller adds the values that a pruned one has reached.
func StopEnding(cause error) Ending {
	switch {
	case errors.Is(cause, ErrTimeout):
		return Ending{Outcome: messaging.OutcomeTimeout, Failure: &messaging.Failure{Reason: messaging.ReasonTimeout, Message: cause.Error()}}
	case errors.Is(cause, ErrCancelled):
		return Ending{Outcome: messaging.OutcomeCancelled, Failure: &messaging.Failure{Reason: messaging.ReasonCancelled, Message: cause.Error()}}
	case errors.Is(cause, ErrPruned):
		return Ending{Outcome: messaging.OutcomePruned}
	default:
		return Ending{Outcome: messaging.OutcomeHandedBack, Failure: &messaging.Failure{Reason: messaging.ReasonLeaving, Message: cause.Error()}}
	}
}
