package nsga2

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// The defaults of Options: those of HEBO (Cowen-Rivers et al. 2022) and of Deb et al.
// 2002, except for the crossover's distribution index 15.
const (
	DefaultPopulation           = 100
	DefaultGenerations          = 100
	DefaultCrossoverEta         = 15
	DefaultCrossoverProbability = 0.9
	DefaultMutationEta          = 20
)

var (
	// ErrInvalid means that a problem or options are invalid; the error that wraps it
	// names the field.
	ErrInvalid = errors.New("invalid search")
	// ErrInfeasible means that Repair discarded every drawn point.
	ErrInfeasible = errors.New("no feasible point found")
)

// Variable is a column of the unit cube.
type Variable struct {
	// Levels is the number of values that the column takes, or 0 for a continuum. Level
	// i lies at (i+½)/Levels, unless Repair moves a numeric one.
	Levels int
	// Categorical means that the levels, two or more, have no order.
	Categorical bool
}

// Problem describes what to minimise.
type Problem struct {
	// Variables are the columns, at least one.
	Variables []Variable
	// Objectives is the number of objectives, at least one.
	Objectives int
	// Evaluate writes the objectives of each row of x to the same row of dst; smaller
	// is better. NaN counts as the worst value, infinities as large numbers. It must
	// not change x or keep either matrix, as both are reused.
	Evaluate func(dst, x *mat.Dense)
	// Features, if positive, splits an evaluation in two, so that redrawing the noise
	// of survivors does not repeat costly work. Describe writes that many features of
	// each new point to dst, once for each point. Score replaces Evaluate and writes
	// the objectives of each row of features to dst. The rules for Evaluate apply to
	// both.
	Features        int
	Describe, Score func(dst, from *mat.Dense)
	// Repair moves a point of [0, 1]^d to the feasible point that it stands for, or
	// returns false to discard it. It may be nil. It must be a function of its
	// argument, and idempotent.
	Repair func(x []float64) bool
}

// Options are the parameters of the search; zero values mean the defaults.
type Options struct {
	// Population is the size of a generation, 2 or more (default 100).
	Population int
	// Generations includes the first population: the search makes at most Population ×
	// Generations new points (default 100).
	Generations int
	// CrossoverEta and MutationEta are the distribution indices: the larger they are,
	// the closer children are to their parents (defaults 15 and 20).
	CrossoverEta, MutationEta float64
	// CrossoverProbability applies to a pair of parents (default 0.9),
	// MutationProbability to a column (default 1/d).
	CrossoverProbability, MutationProbability float64
	// Initial, of d columns, starts the first population; uniformly random points
	// complete it. Rows that are duplicates, that Repair discards or that exceed the
	// population are skipped.
	Initial *mat.Dense
	// Reevaluate evaluates the survivors again in each generation, together with their
	// children. Use it for noisy objectives, so that a lucky draw does not last.
	Reevaluate bool
}

// Population is a set of points with their objectives.
type Population struct {
	// X holds the points, one a row, and F their objectives.
	X, F *mat.Dense
	// Features are the points' features; nil if the problem has none.
	Features *mat.Dense
	// Rank is the number of the non-dominated front that a point belongs to,
	// from 0, and Crowding its crowding distance in it, +Inf at the ends; both
	// as they were when the population was selected.
	Rank     []int
	Crowding []float64
}

// Front returns the rows that no other row dominates.
func (p *Population) Front() []int {
	var front []int
	for i, rank := range p.Rank {
		if rank == 0 {
			front = append(front, i)
		}
	}
	return front
}

// Minimize searches for the Pareto front. It returns the last population, which is
// smaller than requested if fewer distinct feasible points were found; it ends early if
// no new point is left. If ctx ends, it returns the context's error together with the
// population so far, or nil before the first. Other errors wrap ErrInvalid or
// ErrInfeasible.
func Minimize(ctx context.Context, p Problem, o Options, rng *rand.Rand) (*Population, error) {
	o = o.withDefaults(len(p.Variables))
	if err := errors.Join(p.validate(), o.validate(len(p.Variables))); err != nil {
		return nil, err
	}
	s := newSearch(p, o, rng)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	for range o.Generations - 1 {
		if err := ctx.Err(); err != nil {
			return s.population(), err
		}
		if !s.step() {
			break
		}
	}
	return s.population(), nil
}

func (o Options) withDefaults(d int) Options {
	setInt := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set := func(v *float64, to float64) {
		if *v == 0 {
			*v = to
		}
	}
	setInt(&o.Population, DefaultPopulation)
	setInt(&o.Generations, DefaultGenerations)
	set(&o.CrossoverEta, DefaultCrossoverEta)
	set(&o.MutationEta, DefaultMutationEta)
	set(&o.CrossoverProbability, DefaultCrossoverProbability)
	set(&o.MutationProbability, 1/float64(max(d, 1)))
	return o
}

func (p Problem) validate() error {
	var all []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
		}
	}
	bad(len(p.Variables) > 0, "no variables, want at least one")
	for i, v := range p.Variables {
		bad(v.Levels >= 0, "variable %d: levels %d, want 0 or more", i, v.Levels)
		bad(!v.Categorical || v.Levels >= 2, "variable %d: categorical with %d levels, want 2 or more", i, v.Levels)
	}
	bad(p.Objectives > 0, "objectives %d, want at least 1", p.Objectives)
	bad(p.Features >= 0, "features %d, want 0 or more", p.Features)
	if p.Features > 0 {
		bad(p.Describe != nil && p.Score != nil, "%d features need both Describe and Score", p.Features)
	} else {
		bad(p.Evaluate != nil, "Evaluate is nil")
	}
	return errors.Join(all...)
}

func (o Options) validate(d int) error {
	var all []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
		}
	}
	bad(o.Population >= 2, "population %d, want at least 2", o.Population)
	bad(o.Generations >= 1, "generations %d, want at least 1", o.Generations)
	bad(o.CrossoverEta > 0, "crossover eta %g, want a positive number", o.CrossoverEta)
	bad(o.MutationEta > 0, "mutation eta %g, want a positive number", o.MutationEta)
	bad(o.CrossoverProbability > 0 && o.CrossoverProbability <= 1, "crossover probability %g, want one in (0, 1]", o.CrossoverProbability)
	bad(o.MutationProbability > 0 && o.MutationProbability <= 1, "mutation probability %g, want one in (0, 1]", o.MutationProbability)
	if o.Initial != nil && !o.Initial.IsEmpty() {
		_, columns := o.Initial.Dims()
		bad(columns == d, "initial points of %d columns, want %d", columns, d)
	}
	return errors.Join(all...)
}
