// Package registry lists the optimisers that a study file can name.
package registry

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Default is the optimiser of a study that does not name one.
const Default = lean.Default

// Entry is an optimiser that a study file can name.
type Entry = lean.Entry

// UnknownError is an unknown name of an optimiser.
type UnknownError = lean.UnknownError

// Entries returns all the optimisers, the default first.
func Entries() []Entry {
	all := lean.Entries()
	after := slices.IndexFunc(all, func(e Entry) bool { return e.Name == "uhe" }) + 1
	return slices.Insert(all, after, Entry{
		Name:        "pt",
		Description: "Bayesian optimisation with a transformer that was trained on random functions: fast, for few parameters and evaluations.",
		Settings:    pt.Settings(),
		Create: func(v setting.Values) optimizer.Optimizer {
			return pt.New(pt.FromSettings(v), pt.Embedded(), lean.Plain().(pt.Successor))
		},
	})
}

// Names returns the optimisers' names, the default first.
func Names() []string { return lean.List(Entries()).Names() }

// Several returns the names of the optimisers that take several objectives.
func Several() []string {
	var names []string
	for _, e := range Entries() {
		if e.Several {
			names = append(names, e.Name)
		}
	}
	return names
}

// Limits returns the names of the optimisers that take limits.
func Limits() []string {
	var names []string
	for _, e := range Entries() {
		if e.Limits {
			names = append(names, e.Name)
		}
	}
	return names
}

// New returns the named optimiser with the settings of a study file; an empty name
// means Default. The error is an *UnknownError, or joins a *setting.Error for each
// wrong setting.
func New(name string, settings map[string]any) (optimizer.Optimizer, error) {
	return lean.List(Entries()).New(name, settings)
}

// Check returns the error that New would.
func Check(name string, settings map[string]any) error {
	_, err := New(name, settings)
	return err
}

// Find returns the entry of a name. The error is an *UnknownError.
func Find(name string) (Entry, error) { return lean.List(Entries()).Find(name) }
