// Package tpe implements the tree-structured Parzen estimator (Bergstra et al. 2011,
// Algorithms for Hyper-Parameter Optimization) with the choices of Optuna 5's
// TPESampler: one density of the good points and one of all others, both over all
// parameters together (multivariate), where of several objectives the first fronts are good
// (Ozaki et al. 2020, Multiobjective Tree-Structured Parzen Estimator for Computationally
// Expensive Optimization Problems) and points outside of limits are good only where too few are
// within them, those nearest to the limits first; points that are being evaluated count as bad
// (constant liar); and in a space with conditions a density for each group of parameters
// that are active together (group). The next point is the one of a few draws from the
// density of the good points at which the ratio of the two is largest.
//
// Other than in Optuna, the first points are those of a Sobol sequence, failed
// evaluations count as bad, constraints hold for every draw, a point of a finite space
// is not repeated, an excess over a limit counts as a share of the largest one over it, a
// parameter's prior takes the place of the wide kernel in the density of the good points,
// and of more than three objectives at most 25 points are good.
package tpe

import (
	"context"
	"sync/atomic"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Initial    int
	Candidates int
}

// Settings returns the settings with the defaults of Optuna's TPESampler.
func Settings() setting.Set {
	return setting.Set{
		{Name: "initial", Default: 10, Min: 1, Max: 10000, Doc: "Evaluations that must have ended before the densities choose points."},
		{Name: "candidates", Default: 24, Min: 1, Max: 10000, Doc: "Draws of which the most promising is taken; more draws explore less."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{Initial: v.Int("initial"), Candidates: v.Int("candidates")}
}

// New returns the optimiser. Its state is the position in the Sobol sequence of the
// first points. It recommends the best value, since it has no model of noise.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(&proposer{options: o}) }

type proposer struct {
	optimizer.BestValue
	options Options
	// kept is the history of the last request; nil while a request uses it.
	kept atomic.Pointer[history]
}

// Foresees tells optimizer.Guard that an estimator may begin with what running trials will probably reach.
func (a *proposer) Foresees() bool { return true }

// Propose implements optimizer.Proposer.
func (a *proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	h := a.kept.Swap(nil)
	if h == nil || !h.of(r.Encoding, r.Observations) {
		h = newHistory(r.Encoding)
	}
	defer a.kept.Store(h)
	if len(r.Observations) < a.options.Initial || len(h.tables) == 0 {
		sequence := sobol.Resume(r)
		sequence.Map = believe(h.tables)
		batch, err := sequence.Propose(ctx, r, r.N)
		return batch, sequence.State(), err
	}
	batch, err := r.Extend(ctx, nil, r.N, newSearch(r, h, a.options.Candidates).next)
	return batch, r.State, err
}

// believe returns a map that distributes uniform points as the parameters' priors; nil
// if none has one.
func believe(tables []*table) func(x []float64) {
	priors := map[int]mixture{}
	for _, g := range tables {
		for k := range g.columns {
			if g.columns[k].believed() {
				priors[g.at[k]] = g.columns[k].mixture(nil, true)
			}
		}
	}
	if len(priors) == 0 {
		return nil
	}
	return func(x []float64) {
		for i := range x {
			if prior, ok := priors[i]; ok {
				x[i] = prior.quantile(0, x[i])
			}
		}
	}
}
