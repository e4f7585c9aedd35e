package hebo

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
)

// evolve runs the search of HEBO's paper over the space. The problem has its objectives, whose
// features are those of describe; noisy says that they differ at each evaluation. When ctx ends,
// it returns the population reached by then, or nil with an error.
func (s *search) evolve(ctx context.Context, problem nsga2.Problem, e effort, initial *mat.Dense, noisy bool) (*nsga2.Population, error) {
	encoding := s.Request.Encoding
	problem.Variables = make([]nsga2.Variable, encoding.Dim())
	for i, c := range encoding.Columns() {
		problem.Variables[i] = nsga2.Variable{Levels: c.Levels, Categorical: c.Categorical()}
	}
	problem.Features, problem.Describe = 4, s.describe
	problem.Repair = func(x []float64) bool {
		p := encoding.Decode(x)
		if !s.Request.Space.Feasible(p) {
			return false
		}
		copy(x, encoding.Encode(p))
		return true
	}
	options := nsga2.Options{Population: e.population, Generations: e.generations, Initial: initial, Reevaluate: noisy}
	population, err := nsga2.Minimize(ctx, problem, options, s.Request.Rand)
	if population == nil {
		return nil, fmt.Errorf("hebo: search of the acquisition functions: %w", err)
	}
	return population, nil
}

// describe sets a row of dst to the posterior at a row of x: the mean, the variance, the
// logarithm of the probability to complete, and the parameters' log priors.
func (s *search) describe(dst, x *mat.Dense) {
	mean, variance := s.Main.Fantasies.Posterior(x)
	logP := s.Chance.Log(x)
	for i, v := range variance {
		dst.SetRow(i, []float64{mean[i], v, logP[i], s.PriorTerm(x.RawRowView(i))})
	}
}

// untaken returns rows of a population as places, without those that cannot be suggested.
func (s *search) untaken(population *nsga2.Population, rows []int) []loop.Place {
	var places []loop.Place
	for _, row := range rows {
		x := append([]float64(nil), population.X.RawRowView(row)...)
		if !s.Taken(x) {
			places = append(places, loop.Place{Point: s.Request.Encoding.Decode(x), X: x})
		}
	}
	return places
}
