package surrogate

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// Failures decides how failed and infeasible evaluations count.
type Failures string

// The ways of handling failures.
const (
	// FailuresWorst gives them the worst value of the completed evaluations.
	FailuresWorst Failures = "worst"
	// FailuresModel excludes them from the objective's model, and models separately
	// where evaluations complete.
	FailuresModel Failures = "model"
	// FailuresIgnore excludes them.
	FailuresIgnore Failures = "ignore"
)

// maxLabels is the largest number of evaluations to which the model of one kind of
// failure is fitted.
const maxLabels = 400

// The priors of the label noise. An infeasible region has no noise, but its border may
// be rough; a failure of a program may just as well be random.
var labelNoise = map[optimizer.Outcome]gp.LogNormal{
	optimizer.OutcomeInfeasible: {Mu: -5, Sigma: 1},
	optimizer.OutcomeFailed:     {Mu: -1, Sigma: 2},
}

// minReach is the smallest lengthscale of labels. The step at a border, where completed
// and failed evaluations lie close together, would shorten it until an observation said
// nothing about its neighbourhood. The step counts as noise instead.
const minReach = 0.2

// Feasibility models where evaluations complete. For each kind of failure that occurred
// it has a Gaussian process over standardised labels, "completed" and "failed in this
// way"; a value beyond a threshold means a completed evaluation. Far from all
// observations it predicts about the share that completed. Kinds are modelled
// separately (an infeasible point says nothing about crashes) and assumed independent:
// the probability is their product, as in Gelbart, Snoek and Adams (2014). It is
// immutable and safe for concurrent use.
type Feasibility struct{ kinds []boundary }

// boundary is the model of one kind of failure.
type boundary struct {
	outcome   optimizer.Outcome
	model     *gp.Model
	threshold float64
}

// FitFeasibility returns the model. It is nil if nothing has failed, if nothing has
// completed, or if no hyperparameters can be found; evaluations then count as completing.
// warm holds the hyperparameters of earlier fits, by kind. If ctx ends, it returns what
// was fitted so far.
func FitFeasibility(
	ctx context.Context, p *optimizer.Problem, encoding *optimizer.Encoding, warm map[optimizer.Outcome]gp.Hyperparameters, rng *rand.Rand,
) *Feasibility {
	f := &Feasibility{}
	for _, kind := range []optimizer.Outcome{optimizer.OutcomeInfeasible, optimizer.OutcomeFailed} {
		x, labels := labelled(p, encoding, kind)
		if x == nil {
			continue
		}
		y, scale := gp.Standardize(labels)
		config := gp.DefaultConfig(encoding.Dim())
		config.Noise.Prior = labelNoise[kind]
		config.Noise.Start = labelNoise[kind].Mu
		for i := range encoding.Dim() {
			config.Kernel[i].Min = math.Log(minReach)
			config.Kernel[i].Start = max(config.Kernel[i].Start, config.Kernel[i].Min)
		}
		if h, ok := warm[kind]; ok {
			config.Warm, config.Starts, config.Explore, config.Polish = &h, 2, 4, 6
		}
		fitted, _ := gp.Fit(ctx, kernel.NewMatern52(Columns(encoding)), x, y, config, rng)
		if fitted == nil {
			return nil
		}
		// The label 0, halfway between the two, as it is after standardisation.
		f.kinds = append(f.kinds, boundary{kind, fitted.Model, -scale.Mean / scale.SD})
	}
	if len(f.kinds) == 0 {
		return nil
	}
	return f
}

// labelled returns the completed points, with the label 1, and those that ended in one
// kind of failure, with −1; nil if either is missing.
func labelled(p *optimizer.Problem, encoding *optimizer.Encoding, kind optimizer.Outcome) (*mat.Dense, []float64) {
	var of []int
	var all []float64 // labels
	completed, failed := false, false
	for i, o := range p.Observations {
		switch o.Outcome {
		case optimizer.OutcomeCompleted:
			completed = true
			all = append(all, 1)
		case kind:
			failed = true
			all = append(all, -1)
		default:
			continue
		}
		of = append(of, i)
	}
	if !completed || !failed || encoding.Dim() == 0 {
		return nil, nil
	}
	chosen := evenly(len(of), maxLabels)
	x, labels := mat.NewDense(len(chosen), encoding.Dim(), nil), make([]float64, len(chosen))
	for row, k := range chosen {
		x.SetRow(row, encoding.Encode(p.Observations[of[k]].At()))
		labels[row] = all[k]
	}
	return x, labels
}

// evenly returns at most limit of the indices 0…n−1: the latest for one half of limit,
// and an even share of the earlier ones.
func evenly(n, limit int) []int {
	var chosen []int
	latest := limit
	if n > limit {
		latest = limit / 2
	}
	early, first := limit-latest, max(0, n-latest)
	for k := range min(early, first) {
		chosen = append(chosen, k*first/early)
	}
	for i := first; i < n; i++ {
		chosen = append(chosen, i)
	}
	return chosen
}

// Hyperparameters returns the fitted hyperparameters, by kind of failure.
func (f *Feasibility) Hyperparameters() map[optimizer.Outcome]gp.Hyperparameters {
	h := make(map[optimizer.Outcome]gp.Hyperparameters, len(f.kinds))
	for _, b := range f.kinds {
		h[b.outcome] = b.model.Hyperparameters()
	}
	return h
}

// LogProbability returns the logarithm of the probability that an evaluation
// completes, at the rows of x.
func (f *Feasibility) LogProbability(x mat.Matrix) []float64 {
	n, _ := x.Dims()
	sum := make([]float64, n)
	for _, b := range f.kinds {
		mean, variance := b.model.Posterior(x)
		for i, m := range mean {
			// The label of a new evaluation has the noise, too. The sum of logarithms does not underflow
			// where a product of probabilities would, and a search still sees a slope there.
			sum[i] += acquisition.LogCDF((m - b.threshold) / math.Sqrt(variance[i]+b.noise()))
		}
	}
	return sum
}

// Gradient returns LogProbability at the rows of x and its derivatives with respect to
// their coordinates, which are 0 in rounded columns.
func (f *Feasibility) Gradient(x mat.Matrix) (value []float64, gradient *mat.Dense) {
	n, d := x.Dims()
	value, gradient = make([]float64, n), mat.NewDense(n, d, nil)
	for _, b := range f.kinds {
		g := b.model.Fantasies().Gradients(x)
		for i, variance := range g.Variance {
			sd := math.Sqrt(variance + b.noise())
			z := (g.Mean[i] - b.threshold) / sd
			log, byZ := acquisition.LogCDFGradient(z)
			value[i] += log
			// With z = (μ − threshold)/sd: ∂z = ∂μ/sd − z·∂sd/sd, where ∂sd = ∂variance/(2sd).
			for k, row := 0, gradient.RawRowView(i); k < d; k++ {
				row[k] += byZ * (g.DMean.At(i, k)/sd - z*g.DVariance.At(i, k)/(2*sd*sd))
			}
		}
	}
	return value, gradient
}

func (b boundary) noise() float64 { return b.model.Hyperparameters().Noise }
