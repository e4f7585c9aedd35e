// Package lean lists the optimisers that every program with the Go package links. Package papers has
// the others: those that repeat a paper, and the data that they bring with them.
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
	// Earlier says that the optimiser learns from earlier studies, which it reads from
	// optimizer.Problem.Earlier.
	Earlier bool
	// Forecast says that the optimiser is an optimizer.Forecaster.
	Forecast bool

	// Create makes the optimiser with settings that Settings has parsed.
	Create func(setting.Values) optimizer.Optimizer
}

// List is a list of optimisers.
type List []Entry

// Entries returns the optimisers, the default first.
func Entries() List {
	return List{
		{
			Name: Default, Several: true, Limits: true, Earlier: true, Forecast: true, Settings: hebo.Settings(),
			Create: From(hebo.FromSettings, hebo.New),
			Description: "Bayesian optimisation for noisy objectives of any shape: a Gaussian process over transformed outcomes, aware of " +
				"pending points and of noise.",
		}, {
			Name: "gp", Several: true, Limits: true, Earlier: true, Forecast: true, Settings: hebo.PlainSettings(),
			Create:      From(hebo.FromSettings, hebo.New),
			Description: "Bayesian optimisation with a plain Gaussian process: hebo without the transform of outcomes and the linear kernel.",
		}, {
			Name: "tpe", Several: true, Limits: true, Settings: tpe.Settings(), Create: From(tpe.FromSettings, tpe.New),
			Description: "Tree-structured Parzen estimator: densities of the good and of the bad points, as Optuna's TPESampler makes them.",
		}, {
			Name: "bohb", Settings: bohb.Settings(), Create: From(bohb.FromSettings, bohb.New),
			Description: "BOHB's model: kernel densities of the best points and of the others, and a third of the points at random; for studies " +
				"that promote trials.",
		}, {
			Name: "cmaes", Settings: cmaes.Settings(), Create: From(cmaes.FromSettings, cmaes.New),
			Description: "CMA-ES with restarts: a normal distribution that adapts to the objective's shape, with margins for integers and " +
				"categories.",
		}, {
			Name: "forest", Settings: forest.Settings(), Create: From(forest.FromSettings, forest.New),
			Description: "Bayesian optimisation with a random forest, as SMAC does: for spaces of conditions and categories.",
		}, {
			Name: "turbo", Settings: turbo.Settings(), Create: func(v setting.Values) optimizer.Optimizer {
				return turbo.New(turbo.FromSettings(v), Plain())
			},
			Description: "Bayesian optimisation in a trust region around the best point: for many numeric parameters and hundreds of trials.",
		}, {
			Name: "nsga2", Several: true, Limits: true, Settings: nsga2.Settings(), Create: From(nsga2.FromSettings, nsga2.New),
			Description: "NSGA-II, asynchronously: a genetic algorithm that keeps the points nearest to the front; for several objectives, many " +
				"trials, or objectives of any shape.",
		}, {
			Name: "random", Several: true, Limits: true, Create: func(setting.Values) optimizer.Optimizer { return random.New() },
			Description: "Independent, uniformly distributed points: the baseline.",
		}, {
			Name: "sobol", Several: true, Limits: true, Create: func(setting.Values) optimizer.Optimizer { return sobol.New() },
			Description: "A scrambled Sobol sequence: points that fill the space evenly.",
		}, {
			Name: "grid", Settings: grid.Settings(), Create: func(v setting.Values) optimizer.Optimizer { return grid.New(v.Int("points")) },
			Description: "Every point of a grid in order, then of finer grids: for small spaces of which all points are wanted.",
		},
	}
}

// From returns the Create of an optimiser that is made with options, which settings are read into.
func From[Options any](read func(setting.Values) Options, create func(Options) optimizer.Optimizer) func(
	setting.Values) optimizer.Optimizer {
	return func(v setting.Values) optimizer.Optimizer { return create(read(v)) }
}

// Papers are the names of the optimisers that package papers adds to the list.
func Papers() []string { return []string{"hebo-paper", "lgp", "uhe", "pt"} }

// Plain returns gp with its defaults.
func Plain() optimizer.Recommender {
	v, err := hebo.PlainSettings().Parse(nil)
	if err != nil {
		panic(err) // the empty settings are valid
	}
	return hebo.New(hebo.FromSettings(v)).(optimizer.Recommender)
}

// Names returns the optimisers' names, in the order of the list.
func (l List) Names() []string { return l.names(func(Entry) bool { return true }) }

// Several returns the names of the optimisers that take several objectives.
func (l List) Several() []string { return l.names(func(e Entry) bool { return e.Several }) }

// Limits returns the names of the optimisers that take limits.
func (l List) Limits() []string { return l.names(func(e Entry) bool { return e.Limits }) }

// Earlier returns the names of the optimisers that learn from earlier studies.
func (l List) Earlier() []string { return l.names(func(e Entry) bool { return e.Earlier }) }

// Forecast returns the names of the optimisers that forecast what more trials gain.
func (l List) Forecast() []string { return l.names(func(e Entry) bool { return e.Forecast }) }

func (l List) names(with func(Entry) bool) (names []string) {
	for _, e := range l {
		if with(e) {
			names = append(names, e.Name)
		}
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
