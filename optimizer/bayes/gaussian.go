package bayes

import "github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"

// Gaussian returns a Gaussian process as a Surrogate. The first of its kernel's
// hyperparameters MUST be the lengthscales of its columns.
func Gaussian(m *gp.Model) Surrogate { return gaussian{m} }

type gaussian struct{ *gp.Model }

func (g gaussian) Noise() float64 { return g.Hyperparameters().Noise }

func (g gaussian) Lengthscales() []float64 { return g.Hyperparameters().Kernel[:g.Dim()] }

func (g gaussian) Fantasies() Fantasies { return g.Model.Fantasies() }
