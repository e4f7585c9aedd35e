package evaluation

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestFuncEndings(t *testing.T) {
	stopped := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	returns := func(v float64, err error) Func {
		return func(context.Context, study.Point, Task) (float64, error) { return v, err }
	}
	failure := errors.New("boom")
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		f       Func
		outcome messaging.Outcome
		reason  string
	}{
		{"a value", t.Context(), returns(0.5, nil), messaging.OutcomeCompleted, ""},
		{"a value in spite of the end", stopped(ErrLeaving), returns(0.5, nil), messaging.OutcomeCompleted, ""},
		{"NaN", t.Context(), returns(math.NaN(), nil), messaging.OutcomeInfeasible, messaging.ReasonDiverged},
		{"infinity", t.Context(), returns(math.Inf(-1), nil), messaging.OutcomeInfeasible, messaging.ReasonDiverged},
		{"an error", t.Context(), returns(0, failure), messaging.OutcomeFailed, messaging.ReasonReported},
		{"a panic", t.Context(), func(context.Context, study.Point, Task) (float64, error) { panic("boom") }, messaging.OutcomeFailed,
			messaging.ReasonPanic},
		{"a timeout", stopped(ErrTimeout), returns(0, failure), messaging.OutcomeTimeout, messaging.ReasonTimeout},
		{"a cancel", stopped(ErrCancelled), returns(0, failure), messaging.OutcomeCancelled, messaging.ReasonCancelled},
		{"leaving", stopped(ErrLeaving), returns(0, failure), messaging.OutcomeHandedBack, messaging.ReasonLeaving},
		{"a prune", stopped(ErrPruned), returns(0, failure), messaging.OutcomePruned, ""},
		{"another end", stopped(nil), returns(0, failure), messaging.OutcomeHandedBack, messaging.ReasonLeaving},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &messaging.Assignment{Objective: study.Objective{Metric: "error"}}
			e := tt.f.Evaluate(tt.ctx, Task{Assignment: a})
			reason := ""
			if e.Failure != nil {
				reason = e.Failure.Reason
			}
			if e.Outcome != tt.outcome || reason != tt.reason || (len(e.Values) > 0) != (tt.outcome == messaging.OutcomeCompleted) {
				t.Errorf("outcome %q (%q), value %v; want %q (%q)", e.Outcome, reason, e.Values, tt.outcome, tt.reason)
			}
		})
	}
}
