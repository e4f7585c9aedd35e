// Package lean lists the optimisers of package registry that bring no data with them: all but pt,
// whose trained networks take 7 MB of a program.
package lean

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/bohb"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/cmaes"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/forest"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/grid"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/nsga2"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/tpe"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/turbo"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/lgp"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/uhe"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Default is the optimiser of a study that does not name one.
const Default = "hebo"

// Entry is an optimiser that a study file can name.
type Entry struct {
	Name string
	// Description explains in a sentence how the optimiser chooses points.
	Description string
	// Settings lists the settings that algorithm.settings may hold.
	Settings setting.Set
	// Several says that the optimiser takes several objectives, which it reads from
	// optimizer.Problem.Objectives.
	Several bool
	// Limits says that the optimiser takes limits, which it reads from
	// optimizer.Observation.Excess.
	Limits bool

	// Create makes the optimiser with settings that Settings has parsed.
	Create func(setting.Values) optimizer.Optimizer
}

// List is a list of optimisers.
type List []Entry

// Entries returns the optimisers, the default first.
func Entries() List {
	return List{
		{
			Name:        Default,
			Several:     true,
			Limits:      true,
			Description: "Bayesian optimisation for noisy objectives of any shape: a Gaussian process over transformed outcomes, aware of pending points and of noise.",
			Settings:    hebo.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return hebo.New(hebo.FromSettings(v)) },
		},
		{
			Name:        "gp",
			Several:     true,
			Limits:      true,
			Description: "Bayesian optimisation with a plain Gaussian process: hebo without the transform of outcomes and the linear kernel.",
			Settings:    hebo.PlainSettings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return hebo.New(hebo.FromSettings(v)) },
		},
		{
			Name:        "hebo-paper",
			Description: "HEBO as its paper has it, to repeat the paper: a warped Gaussian process, fitted in full each time, and the Pareto front of three acquisition functions.",
			Settings:    hebo.PaperSettings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return hebo.New(hebo.PaperFromSettings(v)) },
		},
		{
			Name:        "tpe",
			Description: "Tree-structured Parzen estimator: densities of the good and of the bad points, as Optuna's TPESampler makes them.",
			Settings:    tpe.Settings(),
			Several:     true,
			Create:      func(v setting.Values) optimizer.Optimizer { return tpe.New(tpe.FromSettings(v)) },
		},
		{
			Name:        "bohb",
			Description: "BOHB's model: kernel densities of the best points and of the others, and a third of the points at random; for studies that promote trials.",
			Settings:    bohb.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return bohb.New(bohb.FromSettings(v)) },
		},
		{
			Name:        "cmaes",
			Description: "CMA-ES with restarts: a normal distribution that adapts to the objective's shape, with margins for integers and categories.",
			Settings:    cmaes.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return cmaes.New(cmaes.FromSettings(v)) },
		},
		{
			Name:        "forest",
			Description: "Bayesian optimisation with a random forest, as SMAC does: for spaces of conditions and categories.",
			Settings:    forest.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return forest.New(forest.FromSettings(v)) },
		},
		{
			Name:        "turbo",
			Description: "Bayesian optimisation in a trust region around the best point: for many numeric parameters and hundreds of trials.",
			Settings:    turbo.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return turbo.New(turbo.FromSettings(v), Plain()) },
		},
		{
			Name:        "lgp",
			Description: "Bayesian optimisation with a latent Gaussian process: for exact objectives that oscillate or jump, whose trend is what counts.",
			Settings:    lgp.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return lgp.New(lgp.FromSettings(v)) },
		},
		{
			Name:        "uhe",
			Description: "Bayesian optimisation with consistent estimates of hyperparameters: a bandit adds random points, to repeat its paper.",
			Settings:    uhe.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return uhe.New(uhe.FromSettings(v)) },
		},
		{
			Name:        "nsga2",
			Several:     true,
			Limits:      true,
			Description: "NSGA-II, asynchronously: a genetic algorithm that keeps the points nearest to the front; for several objectives, many trials, or objectives of any shape.",
			Settings:    nsga2.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return nsga2.New(nsga2.FromSettings(v)) },
		},
		{
			Name:        "random",
			Several:     true,
			Limits:      true,
			Description: "Independent, uniformly distributed points: the baseline.",
			Create:      func(setting.Values) optimizer.Optimizer { return random.New() },
		},
		{
			Name:        "sobol",
			Several:     true,
			Limits:      true,
			Description: "A scrambled Sobol sequence: points that fill the space evenly.",
			Create:      func(setting.Values) optimizer.Optimizer { return sobol.New() },
		},
		{
			Name:        "grid",
			Description: "Every point of a grid in order, then of finer grids: for small spaces of which all points are wanted.",
			Settings:    grid.Settings(),
			Create:      func(v setting.Values) optimizer.Optimizer { return grid.New(v.Int("points")) },
		},
	}
}

// Plain returns gp with its defaults.
func Plain() optimizer.Recommender {
	v, err := hebo.PlainSettings().Parse(nil)
	if err != nil {
		panic(err) // the empty settings are valid
	}
	return hebo.New(hebo.FromSettings(v)).(optimizer.Recommender)
}

// Names returns the optimisers' names, in the order of the list.
func (l List) Names() []string {
	var names []string
	for _, e := range l {
		names = append(names, e.Name)
	}
	return names
}

// UnknownError is an unknown name of an optimiser.
type UnknownError struct {
	Name  string
	Known []string
}

// Error lists the known optimisers.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown algorithm %q: want one of %s", e.Name, strings.Join(e.Known, ", "))
}

// New returns the named optimiser with the settings of a study file; an empty name
// means Default. The error is an *UnknownError, or joins a *setting.Error for each
// wrong setting.
func (l List) New(name string, settings map[string]any) (optimizer.Optimizer, error) {
	e, err := l.Find(cmp.Or(name, Default))
	if err != nil {
		return nil, err
	}
	values, err := e.Settings.Parse(settings)
	if err != nil {
		return nil, fmt.Errorf("algorithm %s: %w", e.Name, err)
	}
	return e.Create(values), nil
}

// Find returns the entry of a name. The error is an *UnknownError.
func (l List) Find(name string) (Entry, error) {
	for _, e := range l {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, &UnknownError{Name: name, Known: l.Names()}
}
