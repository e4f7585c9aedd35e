// Package hebo implements the optimiser that users call hebo, and gp in its plain form:
// Bayesian optimisation after HEBO (Cowen-Rivers et al. 2022), made asynchronous. The
// package surrogate models the objective: outcomes transformed to look normal, a Matérn
// and a linear kernel, a learnt mean, and optionally warped parameters. Points are
// chosen by one acquisition function or by the Pareto front of three (MACE), one after
// another. Each choice assumes simulated values for the points chosen before it and for
// those still being evaluated. When evaluations are noisy, promising points are
// re-evaluated.
//
// Several objectives have a model each. Points are chosen by how much they are expected to
// enlarge the hypervolume of the front, or, beyond three objectives, by random mixtures.
// Limits on metrics have a model each too. The acquisition function is multiplied by the
// probability that a point is within them.
//
// Failed and infeasible evaluations are kept out of that model. A second model predicts
// where evaluations complete, and the acquisition function is multiplied by that
// probability. In a study with more than surrogate.MaxPoints observations, the model
// uses the best, the latest, and an even share of the rest.
package hebo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Acquisition selects how a point is chosen.
type Acquisition string

// The acquisition functions.
const (
	// EI is the logarithm of the expected improvement over the best posterior mean
	// at an evaluated or pending point.
	EI Acquisition = "logei"
	// MACE chooses from the Pareto front of the expected improvement, the probability of
	// improvement and a confidence bound.
	MACE Acquisition = "mace"
)

// Fit selects when hyperparameters are searched for in full.
type Fit string

// The values of Fit.
const (
	// FitWarm takes a few steps from the hyperparameters of the last request.
	FitWarm Fit = "warm"
	// FitFull searches from several places in every request.
	FitFull Fit = "full"
	// FitDoubling searches in full whenever the number of evaluations has doubled.
	FitDoubling Fit = "doubling"
)

// effort returns the effort of a fit to that many completed evaluations. lastFull is
// their number at the last full fit, 0 if there was none.
func (f Fit) effort(completed, lastFull int) surrogate.Effort {
	if f == FitFull || f == FitDoubling && completed >= 2*lastFull {
		return surrogate.EffortFull
	}
	return surrogate.EffortWarm
}

// Noise states what is known of the evaluations' noise.
type Noise string

// The values of Noise.
const (
	NoiseAuto Noise = "auto"
	NoiseYes  Noise = "yes"
	NoiseNo   Noise = "no"
)

// of returns what is known of the noise at the places.
func (n Noise) of(places []surrogate.Place) surrogate.Noise {
	switch n {
	case NoiseYes:
		return surrogate.Noisy
	case NoiseNo:
		return surrogate.NoiseFree
	default:
		return surrogate.NoiseOf(places)
	}
}

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Surrogate   surrogate.Options // its Effort is set by Fit
	Fit         Fit
	Initial     int
	Acquisition Acquisition
	Replicate   bool
	Robust      bool
	PriorWeight float64
	Noise       Noise
	Plateaus    bool
	// Paper leaves out whatever HEBO's paper does not have, and takes its initial design. Of
	// the other fields, Surrogate's Warp and Transform, Initial, Acquisition and Robust may
	// change.
	Paper bool
}

// effort is how much work a search does for a suggestion.
type effort struct {
	candidates              int // where the search of the acquisition function starts
	population, generations int // of NSGA-II, for MACE and noisy functions
}

// usual is the effort of every study. NSGA-II's part of it is that of HEBO's paper.
var usual = effort{candidates: 1000, population: 100, generations: 100}

// Settings returns the settings with HEBO's defaults.
func Settings() setting.Set {
	return setting.Set{
		{Name: "warp", Default: false, Doc: "Warp parameters (Kumaraswamy), for objectives that change fast near a bound."},
		{Name: "transform", Default: true, Doc: "Transform outcomes to look normal (Box-Cox or Yeo-Johnson)."},
		{
			Name: "kernel", Default: string(surrogate.Matern52), Choices: []string{string(surrogate.Matern32), string(surrogate.Matern52)},
			Doc: "Matérn kernel of the model, differentiable once (3/2) or twice (5/2).",
		},
		{
			Name: "lengthscales", Default: string(surrogate.LengthscalesScaled),
			Choices: []string{string(surrogate.LengthscalesScaled), string(surrogate.LengthscalesFlat)},
			Doc:     "Prior on the lengthscales: scaled with the dimension, or flat, as in HEBO.",
		},
		{
			Name: "fit", Default: string(FitWarm), Choices: []string{string(FitWarm), string(FitFull), string(FitDoubling)},
			Doc: "How thoroughly each request searches for the model's hyperparameters.",
		},
		{Name: "linear", Default: true, Doc: "Add a linear kernel to the Matérn kernel, for trends."},
		{
			Name: "initial", Default: 0, Min: 0, Max: 10000,
			Doc: "Trials of the initial design; 0 derives it from parameters and budget.",
		},
		{
			Name: "acquisition", Default: string(EI), Choices: []string{string(EI), string(MACE)},
			Doc: "Acquisition function that chooses the points.",
		},
		{Name: "robust", Default: true, Doc: "Add random noise to the acquisition functions, for acquisition: mace."},
		{
			Name: "failures", Default: string(surrogate.FailuresModel),
			Choices: []string{string(surrogate.FailuresModel), string(surrogate.FailuresWorst), string(surrogate.FailuresIgnore)},
			Doc:     "How failed evaluations count: a model of failure, the worst value, not at all.",
		},
		{Name: "priorWeight", Default: 0.0, Min: 0, Max: 1e6, Doc: "How long the priors of parameters keep weight; 0 is a tenth of the budget."},
		{Name: "plateaus", Default: true, Doc: "Leave places where points gave exactly the same value."},
		{
			Name: "noise", Default: string(NoiseAuto), Choices: []string{string(NoiseAuto), string(NoiseYes), string(NoiseNo)},
			Doc: "Whether repeated evaluations of one point differ; auto finds out.",
		},
		{Name: "replicate", Default: true, Doc: "When evaluations are noisy, re-evaluate promising points (at most 30%)."},
	}.Experimental("warp", "kernel", "lengthscales", "acquisition", "robust")
}

// PlainSettings returns the settings with the defaults of a plain Gaussian process,
// which warps neither inputs nor outcomes.
func PlainSettings() setting.Set {
	plain := map[string]any{"transform": false, "linear": false}
	set := Settings()
	for i, s := range set {
		if value, differs := plain[s.Name]; differs {
			set[i].Default = value
		}
	}
	return set
}

// PaperSettings returns the settings of HEBO as its paper has it: the parts that the paper's
// ablation leaves out.
func PaperSettings() setting.Set {
	paper := map[string]any{"warp": true, "transform": true, "initial": 0, "acquisition": string(MACE), "robust": true}
	var set setting.Set
	for _, s := range Settings() {
		if value, kept := paper[s.Name]; kept {
			s.Default, s.Experimental = value, false
			switch s.Name {
			case "initial":
				s.Doc = "Trials of the initial design; 0 is one more than parameters."
			case "robust":
				s.Doc = "Add random noise to the acquisition functions, or to the only one."
			}
			set = append(set, s)
		}
	}
	return set
}

// PaperFromSettings returns the options for checked settings of PaperSettings.
func PaperFromSettings(v setting.Values) Options {
	return Options{
		Surrogate: surrogate.Options{
			Paper: true, Warp: v.Bool("warp"), Transform: v.Bool("transform"),
			Kernel: surrogate.Matern32, Linear: true, Failures: surrogate.FailuresIgnore,
		},
		Fit: FitFull, Initial: v.Int("initial"), Acquisition: Acquisition(v.String("acquisition")), Robust: v.Bool("robust"),
		Noise: NoiseAuto, Paper: true,
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{
		Surrogate: surrogate.Options{
			Warp: v.Bool("warp"), Transform: v.Bool("transform"),
			Kernel: surrogate.Smoothness(v.String("kernel")), Linear: v.Bool("linear"),
			Lengthscales: surrogate.Lengthscales(v.String("lengthscales")),
			Failures:     surrogate.Failures(v.String("failures")),
		},
		Fit:         Fit(v.String("fit")),
		Initial:     v.Int("initial"),
		Acquisition: Acquisition(v.String("acquisition")),
		Replicate:   v.Bool("replicate"),
		Robust:      v.Bool("robust"),
		PriorWeight: v.Float("priorWeight"),
		Plateaus:    v.Bool("plateaus"),
		Noise:       Noise(v.String("noise")),
	}
}

// DefaultOptions returns the defaults of Settings.
func DefaultOptions() Options {
	v, err := Settings().Parse(nil)
	if err != nil {
		panic(err) // the empty settings are valid
	}
	return FromSettings(v)
}

// New returns the optimiser. The options MUST come from FromSettings or DefaultOptions;
// changes must respect the bounds of Settings.
func New(options Options) optimizer.Optimizer { return optimizer.Guard(proposer{options, usual}) }

type proposer struct {
	options Options
	effort  effort
}

// Noisy tells optimizer.Guard whether evaluations are known beforehand to be noisy.
func (o proposer) Noisy() bool { return o.options.Noise == NoiseYes && o.options.Replicate }

// Propose implements optimizer.Proposer. When ctx ends, it finishes quickly: it uses
// the model and the candidates that it has, without searching among them.
func (o proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	memory := readMemory(r.State, o.options.Surrogate.NumParams(r.Encoding))
	memory.checkFailures(r.Encoding.Dim())
	if len(r.Objectives) > 0 {
		return o.proposeSeveral(ctx, r, memory)
	}
	return o.proposeSingle(ctx, r, memory)
}

// proposeSingle is Propose for one objective.
func (o proposer) proposeSingle(ctx context.Context, r *optimizer.Request, memory *memory) ([]optimizer.Suggestion, optimizer.State, error) {
	if len(r.Limits) > 0 {
		return o.proposeLimited(ctx, r, memory)
	}
	return o.proposeOne(ctx, r, memory)
}

// proposeOne is Propose for one objective without limits.
func (o proposer) proposeOne(ctx context.Context, r *optimizer.Request, memory *memory) ([]optimizer.Suggestion, optimizer.State, error) {
	d := surrogate.Observe(r.Problem, r.Encoding, o.options.Surrogate)
	due := loop.Due(r, o.initial(r), d.Completed)
	batch, err := memory.Points(ctx, r, nil, due)
	if err != nil || len(batch) == r.N || len(batch) < due {
		return batch, memory.state(), err
	}
	m, err := o.model(ctx, r, d, memory)
	if m == nil {
		memory.Fitted = nil
		batch, err = memory.WithoutModel(ctx, r, batch, err)
		return batch, memory.state(), err
	}
	s := o.newSearch(ctx, r, m, o.feasibility(ctx, r, memory), batch, memory)
	batch = s.Fill(ctx, batch, r.N, s.strategies())
	return batch, memory.state(), nil
}

// model returns the model of the data. It searches for hyperparameters unless those in the
// memory still serve, and remembers what it finds. The model is nil if there is none, and
// comes with ctx's error if the search was cut short.
func (o proposer) model(ctx context.Context, r *optimizer.Request, d *surrogate.Data, memory *memory) (*surrogate.Model, error) {
	config := o.options.Surrogate
	config.Effort = o.options.Fit.effort(d.Completed, memory.Full)
	if config.Effort == surrogate.EffortWarm && memory.settled(r.Problem) {
		if m, err := surrogate.Condition(d, config, *memory.Fitted, memory.Plain); err == nil {
			return m, nil
		}
	}
	m, err := surrogate.Fit(ctx, d, config, memory.Fitted, r.Rand)
	if err == nil && !o.options.Paper { // the next fit must not start from one that was cut short
		memory.remember(m.GP.Hyperparameters())
		memory.Seen, memory.Plain = len(r.Observations), m.Plain()
		if config.Effort == surrogate.EffortFull {
			memory.Full = d.Completed
		}
	}
	return m, err
}

// initial returns the number of trials of the initial design.
func (o proposer) initial(r *optimizer.Request) int {
	if o.options.Paper && o.options.Initial == 0 {
		return max(loop.MinCompleted, len(r.Space.Parameters())+1)
	}
	return loop.Initial(o.options.Initial, r)
}

// feasibility returns the model of where evaluations complete. It is nil if nothing has
// failed, if failures are handled in another way, or if the fit fails.
func (o proposer) feasibility(ctx context.Context, r *optimizer.Request, memory *memory) *surrogate.Feasibility {
	if o.options.Surrogate.Failures != surrogate.FailuresModel {
		return nil
	}
	f := surrogate.FitFeasibility(ctx, r.Problem, r.Encoding, memory.Failures, r.Rand)
	if f != nil && ctx.Err() == nil {
		memory.rememberFailures(f.Hyperparameters())
	}
	return f
}
