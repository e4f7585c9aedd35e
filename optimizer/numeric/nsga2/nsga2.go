package nsga2

import (
	"context"
	"errors"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// ErrInfeasible means that Repair discarded every drawn point.
var ErrInfeasible = errors.New("no feasible point found")

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
	// An evaluation has two parts, so that redrawing the noise of survivors does not
	// repeat costly work. Describe writes that many Features of each new point, a row of
	// from, to the same row of dst, once for each point. Score writes the objectives of
	// each row of features to dst; smaller is better. NaN counts as the worst value,
	// infinities as large numbers. Neither may change from or keep a matrix, as both are
	// reused.
	Features        int
	Describe, Score func(dst, from *mat.Dense)
	// Repair moves a point of [0, 1]^d to the feasible point that it stands for, or
	// returns false to discard it. It may be nil. It must be a function of its
	// argument, and idempotent.
	Repair func(x []float64) bool
}

// Options are the parameters of the search.
type Options struct {
	// Population is the size of a generation, 2 or more.
	Population int
	// Generations includes the first population: the search makes at most Population ×
	// Generations new points.
	Generations int
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
// population so far, or nil before the first. Other errors wrap ErrInfeasible.
func Minimize(ctx context.Context, p Problem, o Options, rng *rand.Rand) (*Population, error) {
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
