package fantasia

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/criteria"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Options are the settings of a study. The zero value of each field is its default.
type Options struct {
	// Name is the study's name: lower-case letters, digits and dashes. Default "study"; with a
	// Server, it must be given.
	Name string
	// Labels are for people and for filters of lists, such as {"team": "vision"}: at most 64, with the
	// keys and values that Kubernetes accepts. Note is a text of at most 4096 bytes, such as what the
	// study is for. Both may change. Default: those that the study has.
	Labels map[string]string
	Note   string
	// State is the path of the file that keeps the study, so that a program that is started
	// again goes on where it was. It must be a regular file, or not exist yet. While it is open, no other
	// process can open it, also not under another name. Default: the study is kept in memory only.
	State string
	// Server keeps the study in place of State, and leads it: see package remote. Other processes
	// that use the same Name share the study. Default: the study is led in this process.
	Server Server
	// Patience is how long a call waits for a Server that does not answer, for example because
	// it is being restarted. Evaluations go on meanwhile, and their results are kept. Minimize
	// and Maximize wait for at most 30 seconds. Default 10 minutes.
	Patience time.Duration
	// Parallel is how many trials are evaluated at once. Default 1: then each suggestion uses
	// every result, and a study with the same seed and results repeats its suggestions. With a
	// Server, it is how many this process evaluates at once.
	Parallel int
	// Trials is how many trials to evaluate. Trials that fail or are stopped early count.
	// Default 100, or no bound if there is a Duration or a MaxCost.
	Trials int
	// Duration ends the study after this time, without the time between two runs of the
	// program. Without Trials, no trial is begun that is not expected to end in it. Default: no bound.
	Duration time.Duration
	// Cost names what a trial costs if that is not its time, such as "dollars": see [Trial.Spend]. Default: "cost" if there is
	// a MaxCost, otherwise none.
	Cost string
	// MaxCost is what all trials together may cost. No trial is begun once what has been spent, with what is expected of the
	// trials that are evaluated, has reached it: each evaluation counts with a model's expectation or, without one, the mean. So at
	// most one trial of each slot goes over it. Default: no bound.
	MaxCost float64
	// StopGain ends the study once 30 more trials gain no more than this in nine of ten cases, in the objective's unit, by the
	// optimiser's model and by what the last trials have gained. For a single objective without limits. Default: never.
	StopGain float64
	// StopGainPer says what StopGain is counted for: "trials" is for those 30 trials, "hour" for an hour of trials, where two at once
	// for an hour are two hours, and "cost" for a unit of Cost. What they take is the mean of the 30 trials that ended last.
	// Default: "trials".
	StopGainPer string
	// Goal ends the study when a trial reaches this value. With several objectives, it ends the study
	// when the front has this hypervolume, measured from the Reference of each objective in the product
	// of their units. Default: none.
	Goal *float64
	// MaxFailed ends the study, as failed, after this many failed trials. Default: no bound; but
	// a study whose first three trials all fail is ended in any case.
	MaxFailed int
	// Retries bounds how often a trial is evaluated again.
	Retries Retries
	// Seed makes the suggestions of a study others than those of another seed.
	Seed uint64
	// Algorithm chooses the optimiser. Default "hebo".
	Algorithm Algorithm
	// Algorithms are optimisers beside those that every program has: papers.Algorithms() of package
	// github.com/fantasia-hpo/fantasia/optimizer/papers returns some. Default: none. A Server has all of them.
	Algorithms lean.List
	// EarlyStopping stops trials early that report worse values than others. Default: none.
	EarlyStopping EarlyStopping
	// Initial are points to evaluate first. Values that are missing in one are sampled.
	Initial [][]Assignment
	// LearnFrom are studies that were made before, of the same metric and of similar parameters: by name, type and
	// meaning, the ranges may differ. Their trials are read when the study begins; the optimiser expects good points
	// where theirs were, as far as the study's own trials agree. They may be open in this process or on a
	// server, and each must have completed a trial. Only a study of one value learns. Default: none.
	LearnFrom []*Study

	// Logger gets what is worth a line in a log, such as that the optimiser failed. Default: no
	// log.
	Logger *slog.Logger
	// Progress is called after each trial has ended, one call at a time. It may use the study,
	// except that it must not close it. With a Server, it is called for the trials that this
	// process has told or added. Default: no calls.
	Progress func(Progress)
	// Tracer makes a span for each evaluation of Run. Default: no spans.
	Tracer trace.TracerProvider
}

// Algorithm chooses an optimiser by its name in study files, such as "hebo", "gp", "tpe",
// "cmaes", "turbo", "forest", "random", "sobol" or "grid", with its settings:
// https://github.com/fantasia-hpo/fantasia/blob/main/docs/tune/algorithms.md describes them.
type Algorithm struct {
	Name     string
	Settings map[string]any
}

// EarlyStopping chooses a rule for early stopping by its name in study files, such as "asha" or
// "percentile", with its settings:
// https://github.com/fantasia-hpo/fantasia/blob/main/docs/tune/early-stopping.md describes them.
type EarlyStopping struct {
	Name     string
	Settings map[string]any
	// Metric is the name of the objective whose values Trial.Report tells, by which trials are
	// stopped. Default: the first objective, or the only one.
	Metric string
}

// Retries bounds how often a trial is evaluated again.
type Retries struct {
	// Lost is how many more evaluations a trial gets after the program that evaluated it was killed or
	// crashed, so that a point that crashes the program does not do so for ever. Closing the study, or
	// ending the context of Run, does not count. Default 2; a negative number means none.
	Lost int
}

// Progress tells how a study is doing.
type Progress struct {
	// Trial is the trial that has ended.
	Trial Result
	// Best is the best trial so far; its Number is 0 if none has completed, and if there are several
	// objectives.
	Best Result
	// Ended is how many of the Trials of the budget have ended.
	Ended, Trials int
}

const (
	defaultTrials   = 100
	defaultPatience = 10 * time.Minute
	defaultName     = "study"
	defaultCost     = "cost"
	// metric is the name of the only value of a Study in the records.
	metric = "value"
	// always is how long a study without parallel trials waits for a suggestion that uses every
	// result: longer than an optimiser may take.
	always = study.Duration(time.Hour)
)

// check returns the errors of the options that no other package checks.
func (o *Options) check(definition *study.Study) error {
	var errs []error
	require := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: Options.%s is %v; want %s", ErrInvalid, field, value, want))
		}
	}
	require(o.Name == "" || study.IsName(o.Name), "Name", o.Name,
		"lower-case letters, digits and dashes, at most 63, with no dash at its ends")
	for _, p := range append(study.CheckLabels("Labels", o.Labels), study.CheckNote("Note", o.Note)...) {
		errs = append(errs, fmt.Errorf("%w: Options.%s", ErrInvalid, p))
	}
	require(o.Parallel >= 0, "Parallel", o.Parallel, "at least 1, or 0 for the default")
	require(o.Trials >= 0, "Trials", o.Trials, "at least 1, or 0 for the default")
	require(o.Duration >= 0, "Duration", o.Duration, "a positive duration, or 0 for none")
	require(o.StopGain >= 0 && study.Finite(o.StopGain), "StopGain", o.StopGain, "a finite number above 0, or 0 to never stop so")
	require(o.MaxCost >= 0 && study.Finite(o.MaxCost), "MaxCost", o.MaxCost, "a finite number above 0, or 0 for no bound")
	require(o.MaxFailed >= 0, "MaxFailed", o.MaxFailed, "at least 1, or 0 for no bound")
	objectives := study.MetricNames(definition.Spec.Objectives())
	require(o.EarlyStopping.Metric == "" || slices.Contains(objectives, o.EarlyStopping.Metric), "EarlyStopping.Metric",
		o.EarlyStopping.Metric, "the name of an objective: "+strings.Join(objectives, ", "))
	if o.Server != nil {
		require(o.Name != "", "Name", `""`, "the name under which the server keeps the study")
		require(o.State == "", "State", o.State, "none with Options.Server, which keeps the study")
		require(o.Patience >= 0, "Patience", o.Patience, "a positive duration, or 0 for the default")
		return errors.Join(errs...) // the server checks the rest
	}
	require(o.Patience == 0, "Patience", o.Patience, "none without Options.Server")
	known := o.algorithms()
	takes := criteria.Algorithms{Several: known.Several(), Limits: known.Limits(), Earlier: known.Earlier(), Forecast: known.Forecast()}
	if err := criteria.Check(definition.Spec, takes); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	if _, err := o.optimizer(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Options.Algorithm: %w", ErrInvalid, err))
	}
	if e := definition.Spec.EarlyStopping; e != nil {
		if _, err := pruner.New(*e); err != nil {
			errs = append(errs, fmt.Errorf("%w: Options.EarlyStopping: %w", ErrInvalid, err))
		}
	}
	return errors.Join(errs...)
}

// algorithms returns the optimisers that the program has.
func (o *Options) algorithms() lean.List { return append(lean.Entries(), o.Algorithms...) }

// optimizer returns the optimiser that Algorithm chooses.
func (o *Options) optimizer() (optimizer.Optimizer, error) {
	made, err := o.algorithms().New(o.Algorithm.Name, o.Algorithm.Settings)
	if _, unknown := errors.AsType[*lean.UnknownError](err); unknown && o.Algorithms == nil {
		err = fmt.Errorf("%w; for %s set Options.Algorithms to papers.Algorithms() of github.com/fantasia-hpo/fantasia/optimizer/papers",
			err, strings.Join(lean.Papers(), ", "))
	}
	return made, err
}

// logger returns where to log to.
func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// earlyStopping returns the rule as a study file has it; nil if there is none.
func (o *Options) earlyStopping(objectives []study.Objective) *study.EarlyStopping {
	if o.EarlyStopping.Name == "" && len(o.EarlyStopping.Settings) == 0 {
		return nil
	}
	return &study.EarlyStopping{
		Name: o.EarlyStopping.Name, Metric: cmp.Or(o.EarlyStopping.Metric, objectives[0].Metric), Settings: settings(o.EarlyStopping.Settings),
	}
}

// settings returns settings as a study file has them, which knows no empty ones.
func settings(given map[string]any) map[string]any {
	if len(given) == 0 {
		return nil
	}
	return given
}

// cost returns the metric of the study's cost; empty if that is time.
func (o *Options) cost() string {
	if o.Cost == "" && o.MaxCost != 0 {
		return defaultCost
	}
	return o.Cost
}

// maxTrials returns the budget of trials; 0 if only time or cost bounds the study.
func (o *Options) maxTrials() int {
	if o.Trials == 0 && o.Duration == 0 && o.MaxCost == 0 {
		return defaultTrials
	}
	return o.Trials
}

// definition returns the study as a study file would have it.
func (o *Options) definition(s *Space, objectives []study.Objective, limits []study.Limit) (*study.Study, error) {
	none, lost := 0, max(0, cmp.Or(o.Retries.Lost, study.DefaultRetriesLost))
	d := &study.Study{
		APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: cmp.Or(o.Name, defaultName), Labels: o.Labels},
		Spec: study.Spec{
			Parameters: space.CloneParameters(s.params), Limits: limits,
			Algorithm: study.Algorithm{
				Name: cmp.Or(o.Algorithm.Name, lean.Default), Seed: o.Seed, Settings: settings(o.Algorithm.Settings),
			},
			EarlyStopping: o.earlyStopping(objectives), Note: o.Note,
			Budget: study.Budget{
				MaxTrials: o.maxTrials(), MaxFailedTrials: o.MaxFailed, MaxDuration: study.Duration(o.Duration),
				MaxCost: o.MaxCost, StopWhen: study.StopWhen{Gain: o.StopGain, Per: study.Per(o.StopGainPer)},
			},
			Trial: study.TrialTemplate{Retries: study.Retries{Failed: &none, Lost: &lost}},
		},
	}
	if c := o.cost(); c != "" {
		d.Spec.Cost = &study.Cost{Metric: c}
	}
	if len(objectives) == 1 {
		d.Spec.Objective = objectives[0]
		d.Spec.Objective.Goal = o.Goal
	} else if d.Spec.Several = objectives; o.Goal != nil {
		d.Spec.Goal = &study.FrontGoal{Hypervolume: *o.Goal}
	}
	if o.Server != nil { // several processes share it, so the rest is the server's
		for _, c := range s.constraints {
			d.Spec.Constraints = append(d.Spec.Constraints, c.Source)
		}
	} else {
		wait, fallbackAfter := study.DefaultWait, study.DefaultFallbackAfter
		if o.Parallel <= 1 {
			wait, fallbackAfter = always, always
		}
		d.Spec.Algorithm.Wait, d.Spec.Algorithm.FallbackAfter = &wait, &fallbackAfter
		d.Spec.Parallelism, d.Spec.Pool = cmp.Or(o.Parallel, 1), study.DefaultPool
	}
	var errs []error
	for _, values := range o.Initial {
		point, err := s.raw(values)
		errs = append(errs, err)
		d.Spec.Initial = append(d.Spec.Initial, point)
	}
	errs = append(errs, o.learnFrom(&d.Spec))
	return d, errors.Join(errs...)
}

// learnFrom adds the earlier studies as a study file has them.
func (o *Options) learnFrom(spec *study.Spec) error {
	for i, s := range o.LearnFrom {
		refuse := func(why string) error { return fmt.Errorf("%w: Options.LearnFrom[%d] %s", ErrInvalid, i, why) }
		switch {
		case !s.isOpen():
			return refuse("was not opened; want a Study that Minimize or Maximize returned")
		case len(s.objectives) > 1:
			return refuse("has several objectives; want a Study of one value")
		}
		var completed []study.EarlierTrial
		for r, err := range s.led().Trials() {
			if err != nil {
				return fmt.Errorf("read the trials of Options.LearnFrom[%d]: %w", i, err)
			}
			if v, ok := r.Metrics[s.objectives[0].Metric]; r.State == study.TrialCompleted && ok {
				e := study.EarlierTrial{Parameters: r.Point, Value: v}
				if took := r.Ended.Sub(r.Started); !r.Started.IsZero() && took > 0 {
					e.Seconds = took.Seconds()
				}
				if r.Cost > 0 {
					e.Cost = r.Cost
				}
				completed = append(completed, e)
			}
		}
		if len(completed) == 0 {
			return refuse("has no completed trial")
		}
		e := study.NewEarlier(s.name, s.objectives[0].Direction, completed, study.MaxEarlierTrials/len(o.LearnFrom))
		if why := e.Useless(spec.Parameters); why != "" {
			return refuse("is of no use: " + why)
		}
		spec.AddEarlier(e)
	}
	return nil
}
