package evaluation

import (
	"context"
	"fmt"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// Func makes a Go function an Evaluator of studies with one objective: it receives a point and
// returns the objective's value. A value that is not finite is infeasible (diverged); an error or a
// panic is a failure, except that an error after ctx has ended counts as the answer to
// that. It must be safe for concurrent use, as every slot calls it.
type Func func(ctx context.Context, p study.Point, task Task) (float64, error)

var _ Evaluator = Func(nil)

// Accept accepts all assignments.
func (f Func) Accept(*messaging.Assignment) error { return nil }

// Close does nothing.
func (f Func) Close(context.Context) error { return nil }

// Evaluate calls the function.
func (f Func) Evaluate(ctx context.Context, task Task) (ending Ending) {
	defer func() {
		if p := recover(); p != nil {
			ending = Failed(messaging.ReasonPanic, fmt.Sprintf("the evaluation panicked: %v", p))
		}
	}()
	value, err := f(ctx, task.Assignment.Parameters, task)
	if cause := Stopped(ctx); err != nil && cause != nil {
		return StopEnding(cause)
	}
	if err != nil {
		return Failed(messaging.ReasonReported, err.Error())
	}
	objectives := task.Assignment.Objectives()
	if ending = Valued(objectives, study.Values{value}); ending.Outcome == messaging.OutcomeCompleted {
		ending.Metrics = map[string]float64{objectives[0].Metric: value}
	}
	return ending
}

// Failed returns the ending of a failed evaluation.
func Failed(reason, message string) Ending {
	return Ending{Outcome: messaging.OutcomeFailed, Failure: &messaging.Failure{Reason: reason, Message: message}}
}

// Valued returns the ending of an evaluation that has the objectives' values. If one is not
// finite, the evaluation has diverged.
func Valued(objectives []study.Objective, values study.Values) Ending {
	for i, value := range values {
		if !study.Finite(value) {
			return Ending{Outcome: messaging.OutcomeInfeasible, Failure: &messaging.Failure{
				Reason: messaging.ReasonDiverged, Message: fmt.Sprintf("%q is %v: the evaluation diverged", objectives[i].Metric, value),
			}}
		}
	}
	return Ending{Outcome: messaging.OutcomeCompleted, Values: values}
}
