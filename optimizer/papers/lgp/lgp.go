// Package lgp implements the optimiser lgp: Bayesian optimisation with a latent Gaussian
// process (Bodin et al. 2020, Modulating Surrogates for Bayesian Optimization), made
// asynchronous. The objective is modelled as a smooth function of the parameters and of
// one more input, which is latent: each observation has a value of it of its own. An
// observation that does not fit its neighbours, since the objective oscillates or jumps
// there, moves away from them along the latent input, and the rest stays smooth.
// Predictions are made where the latent input is 0.
//
// The latent values and the hyperparameters are sampled by a Markov chain, which
// continues from request to request, and the expected improvement is averaged over the
// samples. How far latent values may lie from 0 is drawn for each suggestion. Evaluations
// count as exact: the lowest outcome is the one to improve on, and it is recommended.
//
// The paper's rivals differ from lgp in the model alone; the setting model selects them.
package lgp

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Model selects what explains the details that the smooth function cannot.
type Model string

// The models of the paper. Each has a Matérn-5/2 kernel with one lengthscale and unit
// variance, over standardised outcomes, and is sampled.
const (
	// Latent is the latent Gaussian process.
	Latent Model = "latent"
	// Plain is a Gaussian process without noise.
	Plain Model = "plain"
	// Homoscedastic adds noise of the same variance to all observations.
	Homoscedastic Model = "homoscedastic"
	// Heteroscedastic adds noise of a variance of its own to each observation.
	Heteroscedastic Model = "heteroscedastic"
	// Shared is Heteroscedastic with one more factor in all variances, by which the noise can
	// switch off. The paper does not say that its model has one: it is an interpretation.
	Shared Model = "heteroscedastic-shared"
	// Warped warps each parameter by a Kumaraswamy function, without noise.
	Warped Model = "warped"
)

// Acquisition selects how a point is chosen.
type Acquisition string

// The acquisition functions of the paper.
const (
	// EI is the expected improvement.
	EI Acquisition = "logei"
	// UCB is the upper confidence bound of the reward, kappa standard deviations above its
	// mean.
	UCB Acquisition = "ucb"
)

// kappa is the paper's, the default of GPyOpt.
const kappa = 2

// criterion returns the acquisition function.
func (a Acquisition) criterion() bayes.Acquisition {
	if a == UCB {
		return acquisition.UCB{Kappa: kappa}
	}
	return acquisition.EI{Latent: true}
}

// Search selects how the acquisition function is maximised.
type Search string

// The values of Search.
const (
	// Cover samples in a cube that shrinks around the best sample, as the paper does.
	Cover Search = "cover"
	// Climb follows the gradient from the best of many candidates, half of which lie around
	// the best evaluations.
	Climb Search = "climb"
)

// coverSamples is the number of samples of each cube. The paper does not state it.
const coverSamples = 200

// strategies returns the loop's strategies in their order.
func (s Search) strategies(l *loop.Loop) []loop.Strategy {
	if s == Cover {
		return []loop.Strategy{l.Score, l.Cover(coverSamples), l.PickBest}
	}
	return l.Plain()
}

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Model       Model
	Initial     int
	Samples     int
	Sweeps      int
	Acquisition Acquisition
	Search      Search
	Scale       float64
	Clip        bool
}

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{
			Name: "model", Default: string(Latent),
			Choices: []string{string(Latent), string(Plain), string(Homoscedastic), string(Heteroscedastic), string(Shared), string(Warped)},
			Doc:     "Model of the objective: the latent Gaussian process, or one of its rivals.",
		},
		{Name: "initial", Default: 0, Min: 0, Max: 10000, Doc: "Trials of the initial design; 0 derives it from parameters and budget."},
		{Name: "samples", Default: 10, Min: 1, Max: 100, Doc: "Samples of the model over which the acquisition function is averaged."},
		{Name: "sweeps", Default: 150, Min: 1, Max: 10000, Doc: "Sweeps of the Markov chain for a suggestion; more fit better, and are slower."},
		{
			Name: "acquisition", Default: string(EI), Choices: []string{string(EI), string(UCB)},
			Doc: "Acquisition function that chooses the points.",
		},
		{
			Name: "search", Default: string(Cover), Choices: []string{string(Cover), string(Climb)},
			Doc: "How it is maximised: samples in a cube that shrinks, or along its gradient.",
		},
		{Name: "scale", Default: 0.0, Min: 0, Max: 1, Doc: "Standard deviation of latent inputs, in diagonals of the space; 0 draws it."},
		{Name: "clip", Default: false, Doc: "Squeeze outlying outcomes before they are standardised."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{
		Model: Model(v.String("model")), Initial: v.Int("initial"), Samples: v.Int("samples"), Sweeps: v.Int("sweeps"),
		Acquisition: Acquisition(v.String("acquisition")), Search: Search(v.String("search")), Scale: v.Float("scale"), Clip: v.Bool("clip"),
	}
}

// New returns the optimiser. The options MUST come from FromSettings.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(proposer{options: o}) }

// maxPoints is the number of observations that the chain can take at most: a sweep costs
// their number to the third power, about fifty times.
const maxPoints = 256

// candidates is where the search of the acquisition function starts.
const candidates = 1000

type proposer struct {
	optimizer.BestValue // evaluations count as exact
	options             Options
}

// Propose implements optimizer.Proposer. When ctx ends, it samples no further.
func (o proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	memory := readMemory(r.State, o.options.Model)
	d := surrogate.Observe(r.Problem, r.Encoding, surrogate.Options{
		Failures: surrogate.FailuresModel, Points: maxPoints, Unclipped: !o.options.Clip,
	})
	due := loop.Due(r, loop.Initial(o.options.Initial, r), d.Completed)
	batch, err := memory.Propose(ctx, r, due, func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error) {
		return o.fill(ctx, r, d, memory, batch)
	})
	return batch, memory.state(), err
}

// fill adds the model's points to the batch. Its error means that the chain has no sample.
func (o proposer) fill(
	ctx context.Context, r *optimizer.Request, d *surrogate.Data, memory *memory, batch []optimizer.Suggestion,
) ([]optimizer.Suggestion, error) {
	feasible := surrogate.FitFeasibility(ctx, r.Problem, r.Encoding, nil, r.Rand)
	// Points of a request that have the same scale share their samples.
	scales := o.scales(r, r.N-len(batch))
	for from := 0; from < len(scales); {
		to := from + 1
		for to < len(scales) && scales[to] == scales[from] {
			to++
		}
		models, err := o.sample(ctx, r, d, memory, scales[from])
		if err != nil {
			return batch, err
		}
		l := loop.New(ctx, loop.Input{
			Request: r, Data: d, Models: models, Feasibility: feasible, Criterion: o.options.Acquisition.criterion(), Batch: batch,
		}, loop.Options{Exact: true, Candidates: candidates})
		target := len(batch) + to - from
		if batch = l.Fill(ctx, batch, target, o.options.Search.strategies(l)); len(batch) < target {
			break // the guard draws the missing points
		}
		from = to
	}
	return batch, nil
}

// scales draws how far latent values lie from 0, as a standard deviation, for each of n
// suggestions: 0, a hundredth or a tenth of the cube's diagonal, with equal probability.
// With the setting scale, all have the last one's place.
func (o proposer) scales(r *optimizer.Request, n int) []scale {
	scales := make([]scale, n)
	for i := range scales {
		switch {
		case o.options.Model != Latent:
		case o.options.Scale > 0:
			scales[i] = scale(len(shares) - 1)
		default:
			scales[i] = scale(r.Rand.IntN(len(shares)))
		}
	}
	return scales
}

// scale is an index of shares.
type scale int

// shares are the standard deviations of latent values, as shares of the cube's diagonal.
var shares = [...]float64{0, 0.01, 0.1}

// sd returns the standard deviation of latent values over dim columns.
func (o proposer) sd(s scale, dim int) float64 {
	share := shares[s]
	if o.options.Model == Latent && o.options.Scale > 0 {
		share = o.options.Scale
	}
	return share * math.Sqrt(float64(dim))
}

// sample continues the chain of a scale and returns the models of its samples. The error
// means that there is none.
func (o proposer) sample(ctx context.Context, r *optimizer.Request, d *surrogate.Data, memory *memory, s scale) ([]bayes.Surrogate, error) {
	t := newTarget(o.options.Model, surrogate.Columns(r.Encoding), d.X, d.Y, o.sd(s, r.Encoding.Dim()))
	c, known := memory.chain(t, d.Of, s)
	warmUp := o.options.Sweeps
	if known {
		warmUp = o.options.Sweeps / 3
	}
	sweeps := o.options.Sweeps - o.options.Sweeps/3
	if !known {
		warmUp *= 2
	}
	for range warmUp {
		if ctx.Err() != nil {
			break
		}
		c.sweep(r.Rand)
	}
	var models []bayes.Surrogate
	var failed error
	for i := range o.options.Samples {
		for k := i * sweeps / o.options.Samples; k < (i+1)*sweeps/o.options.Samples && ctx.Err() == nil; k++ {
			c.sweep(r.Rand)
		}
		m, err := t.model(c)
		if err != nil {
			failed = err
			continue
		}
		models = append(models, m)
		if ctx.Err() != nil {
			break
		}
	}
	if len(models) == 0 {
		return nil, failed
	}
	memory.keep(c, d.Of, s)
	return models, nil
}
