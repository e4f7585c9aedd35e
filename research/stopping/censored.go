package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// rounds is how often the model is fitted again to the values that it has imputed.
	rounds = 3
	// fewest is how many completed trials the first model needs. With fewer, it is fitted to all
	// trials, and takes the bounds of the stopped ones for their values.
	fewest = 3
)

// imputing is an optimiser that is told values in place of those of stopped trials.
type imputing struct {
	optimizer.Optimizer
	model *gp.Hyperparameters
}

// Suggest implements optimizer.Optimizer.
func (o *imputing) Suggest(
	ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand,
) ([]optimizer.Suggestion, optimizer.State, error) {
	given := *p
	if err := o.impute(ctx, &given); err != nil {
		return nil, nil, fmt.Errorf("impute what was stopped: %w", err)
	}
	return o.Optimizer.Suggest(ctx, &given, state, n, rng)
}

// impute replaces the stopped observations of a problem by completed ones, as in Hutter, Hoos and
// Leyton-Brown, "Bayesian optimization with censored response data" (2013). All that is known
// of a stopped trial is a bound: at its end, its least loss would have been at most what it
// had reached. Its value is the mean of the model's prediction at its point, truncated at
// this bound. The first model is that of the completed trials; then it is fitted again to
// all of them.
func (o *imputing) impute(ctx context.Context, problem *optimizer.Problem) error {
	stopped := problem.Observations
	told := slices.Clone(stopped)
	var completed []optimizer.Observation
	var of []int // the stopped ones
	for i, one := range told {
		if one.Outcome == optimizer.OutcomeCompleted {
			completed = append(completed, one)
			continue
		}
		of = append(of, i)
		told[i].Outcome = optimizer.OutcomeCompleted
	}
	problem.Observations = told
	if len(of) == 0 {
		return nil
	}
	encoding := optimizer.NewEncoding(problem.Space)
	x := mat.NewDense(len(of), encoding.Dim(), nil)
	for row, i := range of {
		x.SetRow(row, encoding.Encode(told[i].Point))
	}
	known := *problem
	if len(completed) >= fewest {
		known.Observations = completed
	}
	options, rng := surrogate.DefaultOptions(), optimizer.NewRand(problem.Seed, problem.First)
	for range rounds {
		m, err := surrogate.Fit(ctx, surrogate.Observe(&known, encoding, options), options, o.model, rng)
		if err != nil {
			return fmt.Errorf("fit the model: %w", err)
		}
		h := m.GP.Hyperparameters()
		o.model = &h
		mean, variance := m.GP.Posterior(x)
		for row, i := range of {
			predicted, sd := m.Data.Moments(mean[row], variance[row]+h.Noise)
			told[i].Values = study.Values{truncated(stopped[i].Values.First(), predicted, sd)}
		}
		known.Observations = told
	}
	return nil
}

// truncated returns the mean of a normal variable that is known to be at most a bound: the bound
// itself if the mean or the deviation is not finite, as where a transform of the values cannot be undone.
func truncated(bound, mean, sd float64) float64 {
	_, ratio := acquisition.LogCDFGradient((bound - mean) / sd)
	if value := mean - sd*ratio; !math.IsNaN(value) && !math.IsInf(value, 0) {
		return value
	}
	return bound
}
