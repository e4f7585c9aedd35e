package hebo

import (
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
	Cost        Cost
	// Paper leaves out whatever HEBO's paper does not have, and takes its initial design. Of
	// the other fields, Surrogate's Warp and Transform, Initial, Acquisition and Robust may
	// change.
	Paper bool
}

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
		{
			Name: "cost", Default: string(CostAuto),
			Choices: []string{string(CostAuto), string(CostNone), string(CostCooled), string(CostPerSecond)},
			Doc:     "How expected times count; auto: if time is short and earlier studies tell.",
		},
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
		Cost:        Cost(v.String("cost")),
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
