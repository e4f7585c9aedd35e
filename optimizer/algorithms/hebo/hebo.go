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
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
)

// New returns the optimiser. The options MUST come from FromSettings or DefaultOptions;
// changes must respect the bounds of Settings.
func New(options Options) optimizer.Optimizer {
	return optimizer.Guard(proposer{options, usual, new(duration.Medians)})
}

type proposer struct {
	options Options
	effort  effort
	times   *duration.Medians
}

// effort is how much work a search does for a suggestion.
type effort struct {
	candidates              int // where the search of the acquisition function starts
	population, generations int // of NSGA-II, for MACE and noisy functions
}

// usual is the effort of every study. NSGA-II's part of it is that of HEBO's paper.
var usual = effort{candidates: 1000, population: 100, generations: 100}

// Noisy tells optimizer.Guard whether evaluations are known beforehand to be noisy.
func (o proposer) Noisy() bool { return o.options.Noise == NoiseYes && o.options.Replicate }

// Foresees tells optimizer.Guard that a model may begin with what running trials will probably reach. HEBO's paper knows no such.
func (o proposer) Foresees() bool { return !o.options.Paper }

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

// proposeSingle is Propose for one objective. With limits, it is the expected improvement over
// the best point within all of them, weighted by the probability that a point is within them,
// without HEBO's other strategies but repeats when no other point is left.
func (o proposer) proposeSingle(
	ctx context.Context, r *optimizer.Request, memory *memory,
) ([]optimizer.Suggestion, optimizer.State, error) {
	o.learn(ctx, r, memory)
	o = o.sized(r, memory)
	d := surrogate.Observe(r.Problem, r.Encoding, o.options.Surrogate)
	due := loop.Due(r, o.initial(r), d.Completed)
	batch, err := o.propose(ctx, r, memory, due, func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error) {
		if c := o.curved(r); c != nil && d.X != nil {
			if batch, ok := o.fillByCurves(ctx, c, d, o.feasibility(ctx, r, memory), memory, batch); ok {
				return batch, nil
			}
		}
		effort := o.options.Fit.effort(d.Completed, memory.Full)
		m, err := o.model(ctx, r, d, memory)
		if m == nil {
			memory.Fitted = nil
			return batch, err
		}
		limits, err := o.limits(ctx, r, r.Problem, m.Data, memory, effort)
		if err != nil {
			memory.Fitted = nil
			return batch, err
		}
		feasible := o.feasibility(ctx, r, memory)
		if limits == nil {
			s := o.newSearch(ctx, r, m, feasible, batch, memory)
			batch = s.Fill(ctx, batch, r.N, s.strategies())
			o.watch(r, memory, batch, o.options.Noise.of(m.Data.Places()))
			return batch, nil
		}
		l := loop.New(ctx, loop.Input{
			Request: r, Data: m.Data, Models: []bayes.Surrogate{bayes.Gaussian(m.GP)}, Criterion: acquisition.EI{},
			Feasibility: feasible, Limits: limits, Earlier: m.Earlier(), Batch: batch,
		}, loop.Options{
			Candidates: o.effort.candidates, PriorWeight: o.options.PriorWeight, Cost: o.cost(ctx, r),
		})
		s := &search{Loop: l, options: o.options, memory: memory}
		s.replicas = s.newReplicas(m.Data.Places(), o.options.Noise.of(m.Data.Places()))
		return l.Fill(ctx, batch, r.N, []loop.Strategy{l.Score, s.exhausted(s.again), l.Best, l.PickBest}), nil
	})
	return batch, memory.state(), err
}

// model returns the model of the data. It searches for hyperparameters unless those in the
// memory still serve, and remembers what it finds. The model is nil if there is none, and
// comes with ctx's error if the search was cut short.
func (o proposer) model(ctx context.Context, r *optimizer.Request, d *surrogate.Data, memory *memory) (*surrogate.Model, error) {
	config := o.options.Surrogate
	config.Effort = o.options.Fit.effort(d.Completed, memory.Full)
	if config.Effort == surrogate.EffortWarm && memory.current(r.Problem) {
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
	switch {
	case o.options.Surrogate.Earlier != nil && o.options.Initial == 0:
		return loop.MinCompleted // earlier studies take the place of a spread over the space
	case o.options.Paper && o.options.Initial == 0:
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
