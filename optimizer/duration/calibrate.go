package duration

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
)

// normal is the standard normal distribution.
var normal = distuv.UnitNormal

const (
	// coverage is the share of evaluations that an interval holds by which its width is judged.
	coverage = 0.9
	// The intervals of a model of few evaluations are too narrow, so the judgement starts with the factor doubt, which counts
	// as much as so many evaluations. research/durations chose both.
	doubt, assumed = 3, 8
	// widest bounds the ratio that is judged: a single evaluation unlike the others says little of the next ones.
	widest = 4.
	// A part of the evaluations is predicted from the others, folds times, with so many steps of a fit.
	folds, foldSteps = 5, 15
	// mostFolded bounds the evaluations by which the width is judged.
	mostFolded = 100
)

// width returns the factor by which a model's standard deviations are multiplied so that its intervals hold nine tenths of
// the evaluations that have ended, where models of the others predict them. The hyperparameters of these models are fitted
// without them, too: those that were chosen for few evaluations tell them too well.
func (d *data) width(ctx context.Context, k *kernel.Kernel, config gp.Config, rng *rand.Rand) (float64, error) {
	x, y, _ := d.outcomes(false)
	if len(y) < MinEnded {
		return doubt, nil
	}
	order := rng.Perm(len(y))
	order = order[:min(len(order), mostFolded)]
	config.Warm, config.Starts, config.Explore, config.Polish = nil, 1, 0, foldSteps
	parts := min(folds, len(order))
	var scores []float64
	for f := range parts {
		var in, out []int
		for i, row := range order {
			if i%parts == f {
				out = append(out, row)
			} else {
				in = append(in, row)
			}
		}
		fitted, err := gp.Fit(ctx, k, rows(x, in), indices.Pick(y, in), config, rng)
		if err != nil {
			return 0, err //nolint:wrapcheck // Fit does
		}
		mean, variance := fitted.Model.Posterior(rows(x, out))
		noise := fitted.Model.Hyperparameters().Noise
		for i, row := range out {
			scores = append(scores, math.Abs(y[row]-mean[i])/math.Sqrt(variance[i]+noise))
		}
	}
	slices.Sort(scores)
	n := float64(len(scores))
	ratio := stat.Quantile(min(1, coverage*(n+1)/n), stat.LinInterp, scores, nil) / normal.Quantile((1+coverage)/2)
	return math.Exp((n*math.Log(min(max(ratio, 1/widest), widest)) + assumed*math.Log(doubt)) / (n + assumed)), nil
}
