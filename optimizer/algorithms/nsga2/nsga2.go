// Package nsga2 is NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002, A Fast and Elitist
// Multiobjective Genetic Algorithm) as an optimiser of expensive objectives, one or several.
// The first points are those of a Sobol sequence. Every later one is a child of two members of
// the population: the completed evaluations nearest to the front, thinned where they crowd.
//
// There are no generations to wait for: a child is made whenever a slot is free, from what has
// been evaluated by then. The population is computed anew from all observations in their
// order, so there is no state to lose. Evaluations without a value have no place in it.
// Points outside of limits come after all others, those nearest to the limits first.
// Constraints hold for every child, and no point of a finite space is repeated.
package nsga2

import (
	"context"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Options are the optimiser's settings; Settings documents them.
type Options struct{ Population int }

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{Name: "population", Default: 20, Min: 4, Max: 1000, Doc: "Points that have children; as many must have ended before the first child."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options { return Options{Population: v.Int("population")} }

// New returns the optimiser. Its state is the position in the Sobol sequence of the first
// points.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(proposer{options: o}) }

type proposer struct {
	optimizer.BestValue
	options Options
}

// Propose implements optimizer.Proposer.
func (a proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	var archive *nsga2.Archive
	if len(r.Observations) >= a.options.Population && r.Encoding.Dim() > 0 {
		archive = a.archive(r)
	}
	if archive == nil || archive.Len() == 0 {
		sequence := sobol.Resume(r)
		batch, err := sequence.Propose(ctx, r, r.N)
		return batch, sequence.State(), err
	}
	batch, err := r.Draw(ctx, r.N, archive.Child, optimizer.SourceModel, "a child of two points near the front")
	return batch, r.State, err
}

// archive returns the population after all completed evaluations.
func (a proposer) archive(r *optimizer.Request) *nsga2.Archive {
	columns := r.Encoding.Columns()
	variables := make([]nsga2.Variable, len(columns))
	for i, c := range columns {
		variables[i] = nsga2.Variable{Levels: c.Levels, Categorical: c.Categorical()}
	}
	objectives := r.Objectives
	if objectives == nil {
		objectives = []study.Objective{{Direction: r.Direction}}
	}
	outside := penalties(r.Problem)
	archive, costs := nsga2.NewArchive(variables, len(objectives), a.options.Population, r.Rand), make([]float64, len(objectives))
	for k, o := range r.Observations {
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		for i := range objectives {
			costs[i] = objectives[i].Direction.Cost(o.Values[i])
			if outside != nil && outside[k] > 0 {
				costs[i] = outside[k]
			}
		}
		archive.Add(r.Encoding.Encode(o.At()), costs)
	}
	return archive
}

// penalties returns the costs of observations outside of the limits, in every objective; nil
// without limits, and 0 within them. They make Deb's constrained domination of the usual one
// (the paper's section VI): a point within all limits dominates all others, and of two others
// the one nearer to the limits dominates.
func penalties(p *optimizer.Problem) []float64 {
	if len(p.Limits) == 0 {
		return nil
	}
	violations := p.Violations()
	order := slices.Clone(violations)
	slices.Sort(order)
	order = slices.Compact(order)
	costs := make([]float64, len(violations))
	for i, v := range violations {
		if rank, _ := slices.BinarySearch(order, v); v > 0 {
			costs[i] = math.MaxFloat64 / 8 * (1 + float64(rank)/float64(len(order))) // at most what the search takes
		}
	}
	return costs
}
