package fantasia

import (
	"context"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/study"
)

// State is the state of a trial.
type State = study.TrialState

// The states of a trial. In all but Pending and Running it has ended.
const (
	Pending    State = study.TrialPending
	Running    State = study.TrialRunning
	Completed  State = study.TrialCompleted
	Failed     State = study.TrialFailed
	Infeasible State = study.TrialInfeasible
	Stopped    State = study.TrialPruned    // early
	Cancelled  State = study.TrialCancelled // the study ended first
)

// Result is what is known of a trial. Read its values with [Param.Of].
type Result struct {
	// Number is the trial's number, counted from 1.
	Number int
	State  State
	// Value is the only objective's value; NaN unless the trial has completed. Read one of several
	// with Criterion.Of.
	Value float64
	// Source says where the point comes from: "model", "design", "random", "initial",
	// "requested", "added", "promoted" or "fallback".
	Source string
	// Failure is why the trial's last evaluation has failed, or why it was stopped early; empty if
	// neither happened.
	Failure string
	// Started and Ended are when its last evaluation did; zero if it has not.
	Started, Ended time.Time
	// Cost is what the trial has cost by now, as [Trial.Spend] was told; NaN if it was told nothing.
	Cost    float64
	at      Point
	metrics map[string]float64
}

func (r Result) point() Point { return r.at }

// Values returns the trial's values by name: float64, int64, string or bool. Do not change the
// map.
func (r Result) Values() map[string]any { return r.at.Values() }

// Metrics returns what was measured of a completed trial, by name: the objectives, and what the
// limits bound. The value of a [Study] has the name "value". Of other trials, it returns what is known
// [Criterion.Early]. Do not change the map.
func (r Result) Metrics() map[string]float64 { return r.metrics }

// Measurement is a value that a trial has reported.
type Measurement struct {
	Step  int
	Value float64
}

// Recommendation is the trial that is best by the optimiser's model, which takes noise into
// account, with the model's mean and standard deviation at its point. If the optimiser has no
// model, these are the trial's value and 0.
type Recommendation struct {
	Trial    Result
	Mean, SD float64
}

// result returns what a binding knows of a trial. One that does not exist has no point.
func (s *Study) result(r library.Result) Result {
	if r.Number == 0 {
		return Result{Value: r.Value, Cost: math.NaN()}
	}
	return Result{
		Number: r.Number, State: r.State, Value: r.Value, Source: r.Source, Failure: r.Failure, Started: r.Started, Ended: r.Ended,
		Cost: r.Cost, at: Point{s.space, r.Point}, metrics: r.Metrics,
	}
}

// curve returns what a trial has reported of a metric.
func (s *Study) curve(trial int, metric string) ([]Measurement, error) {
	curve, err := s.led().Curve(trial, metric)
	var list []Measurement
	for _, m := range curve {
		list = append(list, Measurement(m))
	}
	return list, err
}

// front returns a front of a binding.
func (s *Study) front(on []library.Optimal, err error) ([]Optimal, error) {
	var list []Optimal
	for _, o := range on {
		list = append(list, Optimal{s.result(o.Trial), o.Knee, o.Expected})
	}
	return list, err
}

// recommended returns the recommended front.
func (s *Study) recommended(ctx context.Context) ([]Optimal, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	return s.front(s.led().Recommended(ctx))
}
