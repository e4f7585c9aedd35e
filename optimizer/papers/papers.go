// Package papers lists the optimisers that repeat a paper. They are not part of every program: pass
// Algorithms as Options.Algorithms of package fantasia to use one of them from Go. The programs of
// Fantasia have them all.
package papers

import (
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/lgp"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/uhe"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Algorithms returns the optimisers of lean.Papers. They add 4 MB to a program, most of which
// are the trained networks of pt.
func Algorithms() lean.List {
	return lean.List{
		{
			Name: "hebo-paper", Settings: hebo.PaperSettings(), Create: lean.From(hebo.PaperFromSettings, hebo.New),
			Description: "HEBO as its paper has it, to repeat the paper: a warped Gaussian process, fitted in full each time, " +
				"and the Pareto front of three acquisition functions.",
		}, {
			Name: "lgp", Settings: lgp.Settings(), Create: lean.From(lgp.FromSettings, lgp.New),
			Description: "Bayesian optimisation with a latent Gaussian process, to repeat its paper: level with hebo on exact objectives that " +
				"oscillate or jump, at a hundred times the time.",
		}, {
			Name: "uhe", Settings: uhe.Settings(), Create: lean.From(uhe.FromSettings, uhe.New),
			Description: "Bayesian optimisation with consistent estimates of hyperparameters: a bandit adds random points, to repeat its paper.",
		}, {
			Name: "pt", Settings: pt.Settings(), Create: transformer,
			Description: "Bayesian optimisation with a transformer that was trained on random functions: up to 12 parameters and 128 evaluations, " +
				"six times as slow as hebo.",
		},
	}
}

// transformer makes pt, which hands over to gp.
func transformer(v setting.Values) optimizer.Optimizer {
	return pt.New(pt.FromSettings(v), pt.Embedded(), lean.Plain().(pt.Successor))
}
