// Package library is what package fantasia and its two bindings share. A binding leads a study and
// keeps it: package inprocess by an engine in the process, package onserver by a server.
package library

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// The errors of both bindings, which package fantasia documents.
var (
	ErrNothing     = errors.New("no trial has completed")
	ErrDifferent   = errors.New("the study differs from the one that is kept")
	ErrEnded       = errors.New("ended")
	ErrFailed      = errors.New("the study failed")
	ErrClosed      = errors.New("the study is closed")
	ErrUnavailable = errors.New("the server does not answer")

	// ErrInfeasible, ErrStopped and ErrInterrupted are how an evaluation can end but for a value and a
	// failure.
	ErrInfeasible  = errors.New("infeasible")
	ErrStopped     = errors.New("stopped early")
	ErrInterrupted = errors.New("interrupted")
)

// WentOn is what a binding logs when GoOn has continued a study.
const WentOn = "the study had failed, and goes on: its failures so far no longer count for its end"

// Binding leads a study and keeps it. Its methods are those of fantasia.Study and fantasia.Trial with
// the same names. Safe for concurrent use.
type Binding interface {
	Ask(ctx context.Context) (*Evaluation, error)
	Tell(e *Evaluation, found Measured, err error) error
	// Turn ends an evaluation as Tell does, also one that has ended already, and returns the next one
	// as Ask does.
	Turn(ctx context.Context, e *Evaluation, found Measured, err error) (*Evaluation, error)
	// Report notes what an evaluation has reported, and returns what Instruction does.
	Report(e *Evaluation, metric string, step int, value float64) error
	// Instruction returns why an evaluation should end; nil if it should not.
	Instruction(e *Evaluation) error
	// Continue has a trial run to its end that was stopped early.
	Continue(trial int) error
	// Enqueue has a raw point evaluated, and Add adds one with its value.
	Enqueue(point map[string]any) error
	Add(found Measured, point map[string]any) error
	// Outcome returns how the study has ended, as Run does; nil with false if it has not.
	Outcome() (err error, ended bool)
	// GoOn continues a study that has failed, as Run does when it is called again. Failures so far no
	// longer count for the study's end. It changes nothing if the study has not failed, or cannot go on.
	GoOn(ctx context.Context) error
	Best() (Result, error)
	Trials() iter.Seq2[Result, error]
	Curve(trial int, metric string) ([]Measurement, error)
	// Front returns the front, the best in the first objective first.
	Front() ([]Optimal, error)
	// Recommended returns the recommended front: of a single objective, one trial.
	Recommended(ctx context.Context) ([]Optimal, error)
	Close() error
}

// Settings are what both bindings need to open a study.
type Settings struct {
	// Definition is the study as a study file has it, and Space its compiled space.
	Definition *study.Study
	Space      *space.Space
	Log        *slog.Logger
	// Progress is called after each trial has ended, one call at a time; nil for no calls.
	Progress func(Progress)
}

// Measured is what an evaluation has found: the objectives' values in their order, and the metrics of
// limits.
type Measured struct {
	Values  study.Values
	Metrics map[string]float64
}

// Result is what is known of a trial: see fantasia.Result.
type Result struct {
	Number          int
	State           study.TrialState
	Value           float64
	Source, Failure string
	Started, Ended  time.Time
	Point           study.Point
	Metrics         map[string]float64
	// Cost is what the trial has cost, in a study whose cost is not time; NaN if that is not known.
	Cost float64
}

// Measure sets what was measured of the trial, whose State is set: the objectives' values, and other
// metrics. Of a trial that has not completed, only what is known early counts.
func (r *Result) Measure(spec *study.Spec, values study.Values, others map[string]float64) {
	r.Value = math.NaN()
	if r.State != study.TrialCompleted {
		for _, name := range spec.EarlyMetrics() {
			if v, ok := others[name]; ok {
				if r.Metrics == nil {
					r.Metrics = map[string]float64{}
				}
				r.Metrics[name] = v
			}
		}
		return
	}
	objectives := spec.Objectives()
	r.Metrics = make(map[string]float64, len(values)+len(others))
	for name, v := range others {
		r.Metrics[name] = v
	}
	for k := range min(len(values), len(objectives)) {
		r.Metrics[objectives[k].Metric] = values[k]
	}
	if len(objectives) == 1 {
		r.Value = values.First()
	}
}

// Optimal is a trial on a front: see fantasia.Optimal.
type Optimal struct {
	Trial    Result
	Knee     bool
	Expected map[string]Expectation // by objective; nil without a model
}

// Expectation is a model's mean and standard deviation.
type Expectation struct{ Mean, SD float64 }

// Expect returns the means and standard deviations of the objectives by name.
func Expect(spec *study.Spec, means, sds []float64) map[string]Expectation {
	all := make(map[string]Expectation, len(means))
	for k, o := range spec.Objectives()[:min(len(means), len(sds), len(spec.Objectives()))] {
		all[o.Metric] = Expectation{means[k], sds[k]}
	}
	return all
}

// Front returns trials on a front, the best in the first objective first, with its knee. The error
// wraps ErrNothing if there are none.
func Front(spec *study.Spec, trials []Result) ([]Optimal, error) {
	if len(trials) == 0 {
		return nil, Nothing(spec)
	}
	objectives := spec.Objectives()
	values := make([]study.Values, len(trials))
	for i := range trials {
		for k := range objectives {
			values[i] = append(values[i], Metric(trials[i].Metrics, objectives[k].Metric))
		}
	}
	on, knee := front.Ordered(objectives, values)
	list := make([]Optimal, len(on))
	for k, i := range on {
		list[k] = Optimal{Trial: trials[i], Knee: i == knee}
	}
	return list, nil
}

// Nothing returns why there is no best trial: an error that wraps ErrNothing.
func Nothing(spec *study.Spec) error {
	if len(spec.Limits) > 0 {
		return fmt.Errorf("%w within all limits", ErrNothing)
	}
	return ErrNothing
}

// Metric returns a metric; NaN if it was not measured.
func Metric(metrics map[string]float64, name string) float64 {
	if v, ok := metrics[name]; ok {
		return v
	}
	return math.NaN()
}

// Metrics returns the names of all objectives and limits, without repeats.
func Metrics(spec *study.Spec) []string {
	return slices.Concat(study.MetricNames(spec.Objectives()), spec.LimitMetrics())
}

// Measurement is a value that a trial has reported.
type Measurement struct {
	Step  int
	Value float64
}

// Progress tells how a study is doing: see fantasia.Progress.
type Progress struct {
	Trial, Best   Result
	Ended, Trials int
}

// Failure describes an error in the records.
func Failure(reason string, err error) *messaging.Failure {
	text := err.Error()
	return &messaging.Failure{Reason: reason, Message: text[:min(len(text), messaging.MaxMessage)]}
}

// Noted returns the labels and the note of a study that is opened again: those that the program
// gives, or else those that the study has.
func Noted(given, has *study.Study) (labels map[string]string, note string) {
	if labels = given.Metadata.Labels; labels == nil {
		labels = has.Metadata.Labels
	}
	return labels, cmp.Or(given.Spec.Note, has.Spec.Note)
}

// Equal reports whether two studies are the same in JSON.
func Equal(a, b *study.Study) bool {
	first, err := json.Marshal(a)
	second, again := json.Marshal(b)
	return err == nil && again == nil && bytes.Equal(first, second)
}

// Unusable is a Binding of which every call fails with Err.
type Unusable struct{ Err error }

var _ Binding = Unusable{}

// Ask implements Binding.
func (u Unusable) Ask(context.Context) (*Evaluation, error) { return nil, u.Err }

// Tell implements Binding.
func (u Unusable) Tell(*Evaluation, Measured, error) error { return u.Err }

// Turn implements Binding.
func (u Unusable) Turn(context.Context, *Evaluation, Measured, error) (*Evaluation, error) {
	return nil, u.Err
}

// Report implements Binding.
func (u Unusable) Report(*Evaluation, string, int, float64) error { return u.Err }

// Instruction implements Binding.
func (u Unusable) Instruction(*Evaluation) error { return u.Err }

// Enqueue implements Binding.
func (u Unusable) Enqueue(map[string]any) error { return u.Err }

// Continue implements Binding.
func (u Unusable) Continue(int) error { return u.Err }

// Add implements Binding.
func (u Unusable) Add(Measured, map[string]any) error { return u.Err }

// Outcome implements Binding.
func (u Unusable) Outcome() (err error, ended bool) { return u.Err, true }

// GoOn implements Binding.
func (u Unusable) GoOn(context.Context) error { return u.Err }

// Best implements Binding.
func (u Unusable) Best() (Result, error) { return Result{}, u.Err }

// Trials implements Binding.
func (u Unusable) Trials() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) { yield(Result{}, u.Err) }
}

// Curve implements Binding.
func (u Unusable) Curve(int, string) ([]Measurement, error) { return nil, u.Err }

// Front implements Binding.
func (u Unusable) Front() ([]Optimal, error) { return nil, u.Err }

// Recommended implements Binding.
func (u Unusable) Recommended(context.Context) ([]Optimal, error) { return nil, u.Err }

// Close implements Binding.
func (u Unusable) Close() error { return u.Err }
