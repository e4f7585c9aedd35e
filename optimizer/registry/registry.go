// Package registry lists the optimisers that a study file can name.
package registry

import (
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/papers"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
)

// Default is the optimiser of a study that does not name one.
const Default = lean.Default

// Entry is an optimiser that a study file can name.
type Entry = lean.Entry

// UnknownError is an unknown name of an optimiser.
type UnknownError = lean.UnknownError

// Entries returns all the optimisers, the default first.
func Entries() lean.List { return append(lean.Entries(), papers.Algorithms()...) }

// Names returns the optimisers' names, the default first.
func Names() []string { return Entries().Names() }

// Several returns the names of the optimisers that take several objectives.
func Several() []string { return Entries().Several() }

// Limits returns the names of the optimisers that take limits.
func Limits() []string { return Entries().Limits() }

// Earlier returns the names of the optimisers that learn from earlier studies.
func Earlier() []string { return Entries().Earlier() }

// Forecast returns the names of the optimisers that forecast what more trials gain.
func Forecast() []string { return Entries().Forecast() }

// New returns the named optimiser with the settings of a study file; an empty name
// means Default. The error is an *UnknownError, or joins a *setting.Error for each
// wrong setting.
func New(name string, settings map[string]any) (optimizer.Optimizer, error) {
	return Entries().New(name, settings)
}

// Check returns the error that New would.
func Check(name string, settings map[string]any) error {
	_, err := New(name, settings)
	return err
}

// Find returns the entry of a name. The error is an *UnknownError.
func Find(name string) (Entry, error) { return Entries().Find(name) }
