package fantasia

import (
	"time"

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
	at             Point
	metrics        map[string]float64
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
