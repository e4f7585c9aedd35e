// Package uhe implements the optimiser uhe: Bayesian optimisation with consistent
// estimates of the model's hyperparameters (Ha et al. 2023, Provably Efficient Bayesian
// Optimization with Unknown Gaussian Process Hyperparameter Estimation), made
// asynchronous. What a search evaluates is no independent sample of the objective, which
// misleads estimates in two ways. The hyperparameters are therefore fitted to points drawn
// uniformly from the space, each with the outcome of the nearest observation. And a bandit
// decides for each pair of trials whether it begins with a random point, by what pairs of
// both kinds have found.
//
// A pair is two consecutive trials, so nobody waits for one of them. Its value counts as a share of
// the range of all values so far, and 0 if neither trial completed. The bandit expects as many pairs
// as the budget has room for; if the study goes on, it begins again with twice as many.
//
// The priors are the paper's: Gamma(0.001, 10) on each lengthscale, in units of a parameter's range,
// and on the variances of the objective and of the noise, in units of the outcomes' variance. The
// paper does not say what the two numbers are, so the setting prior has both readings. A fit maximises
// them as the paper's software does, as densities of what the softplus function maps to these numbers.
//
// Outcomes are standardised, outliers included: the paper does nothing about these.
//
// The paper's rivals share all the rest; the setting method selects them.
package uhe

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Method selects how hyperparameters are found and when points are random.
type Method string

// The method of the paper, its rivals, and the parts of its ablation.
const (
	// UHE fits to pseudo-points, and a bandit begins pairs of trials.
	UHE Method = "uhe"
	// MAP fits to the observations, and chooses every point by the model.
	MAP Method = "map"
	// MCMC averages over samples of the hyperparameters, given the observations.
	MCMC Method = "mcmc"
	// Shrink divides the lengthscales of MAP until the next point is uncertain enough
	// (Wang and de Freitas 2014, in the variant of Berkenkamp et al. 2019).
	Shrink Method = "shrink"
	// Adaptive divides the lengthscales of MAP by a factor that never falls, and raises the
	// upper confidence bound with it, until the model allows the next point the regret of a
	// reference (A-GP-UCB, Berkenkamp et al. 2019, as Ha et al. set it).
	Adaptive Method = "adaptive"
	// Portfolio is MAP where a bandit chooses between a random point and the model's for
	// each trial (after Hoffman et al. 2011).
	Portfolio Method = "portfolio"
	// Alternate fits to pseudo-points, and every second point is random (RA-BO).
	Alternate Method = "alternate"
	// Bandit is UHE with the fit of MAP (Random+EXP3).
	Bandit Method = "bandit"
)

// pseudo reports whether the method fits to pseudo-points.
func (m Method) pseudo() bool { return m == UHE || m == Alternate }

// group returns how many trials share a decision; 0 if no point is random.
func (m Method) group() int {
	switch m {
	case UHE, Bandit, Alternate:
		return 2
	case Portfolio:
		return 1
	case MAP, MCMC, Shrink, Adaptive:
	}
	return 0
}

// Prior selects what the numbers of the paper's Gamma(0.001, 10) are.
type Prior string

// The readings of the paper's prior.
const (
	// ShapeRate takes them as shape and rate, as textbooks do. It favours short lengthscales and
	// small variances: its mean is 0.0001.
	ShapeRate Prior = "shape-rate"
	// MeanVariance takes them as mean and variance, as GPy's Gamma.from_EV does: the shape is 1e-7
	// and the rate 1e-4. It says hardly anything below 1,000.
	MeanVariance Prior = "mean-variance"
)

// gamma returns the prior on each lengthscale, on the variance and on the noise's variance. Its
// density is infinite at 0, but that of the logarithm, from which a chain samples, is proper.
func (p Prior) gamma() gp.Gamma {
	const first, second = 1e-3, 10
	if p == MeanVariance {
		return gp.Gamma{Shape: first * first / second, Rate: first / second}
	}
	return gp.Gamma{Shape: first, Rate: second}
}

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Method  Method
	Prior   Prior
	Initial int
	Kappa   float64
}

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{
			Name: "method", Default: string(UHE),
			Choices: []string{
				string(UHE), string(MAP), string(MCMC), string(Shrink), string(Adaptive), string(Portfolio), string(Alternate), string(Bandit),
			},
			Doc: "How hyperparameters are found: the paper's method, or one of its rivals.",
		},
		{
			Name: "prior", Default: string(ShapeRate), Choices: []string{string(ShapeRate), string(MeanVariance)},
			Doc: "What the numbers of the paper's prior Gamma(0.001, 10) are.",
		},
		{Name: "initial", Default: 0, Min: 0, Max: 10000, Doc: "Trials of the initial design; 0 derives it from parameters and budget."},
		{Name: "kappa", Default: 1.96, Min: 0, Max: 100, Doc: "Standard deviations of the upper confidence bound that chooses points."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{
		Method: Method(v.String("method")), Prior: Prior(v.String("prior")), Initial: v.Int("initial"), Kappa: v.Float("kappa"),
	}
}

// New returns the optimiser. The options MUST come from FromSettings.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(proposer{o}) }

// maxPoints is the number of observations that the model takes at most: the fit to twice
// as many pseudo-points is what a suggestion costs.
const maxPoints = 256

// candidates is where the search of the acquisition function starts.
const candidates = 1000

type proposer struct{ options Options }

var _ optimizer.Recommender = proposer{}

// observe reads the observations as the model sees them.
func observe(p *optimizer.Problem, encoding *optimizer.Encoding) *surrogate.Data {
	return surrogate.Observe(p, encoding, surrogate.Options{Failures: surrogate.FailuresModel, Points: maxPoints, Unclipped: true})
}

// Propose implements optimizer.Proposer. When ctx ends, it fits no further.
func (o proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	memory := readMemory(r.State, o.options.Method, r.Encoding.Dim()+1)
	size := o.options.Method.group()
	memory.Bandit.learn(r.Problem, max(1, size))
	d := observe(r.Problem, r.Encoding)
	initial := loop.Initial(o.options.Initial, r)
	due := loop.Due(r, initial, d.Completed)
	batch, err := memory.Propose(ctx, r, due, func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error) {
		feasible := surrogate.FitFeasibility(ctx, r.Problem, r.Encoding, nil, r.Rand)
		models, err := o.fit(ctx, r, d, memory)
		if err != nil {
			return batch, err
		}
		in := loop.Input{
			Request: r, Data: d, Models: models, Feasibility: feasible,
			Criterion: acquisition.UCB{Kappa: o.options.Kappa}, Batch: batch,
		}
		if o.options.Method == Shrink || o.options.Method == Adaptive {
			return o.narrow(ctx, in, memory), nil
		}
		l := loop.New(ctx, in, loop.Options{Candidates: candidates})
		strategies := l.Plain()
		if size > 0 {
			horizon := (r.MaxTrials - initial) / size
			strategies = append([]loop.Strategy{o.random(l, &memory.Bandit, horizon)}, strategies...)
		}
		return l.Fill(ctx, batch, r.N, strategies), nil
	})
	return batch, memory.state(), err
}

// random returns the strategy that picks a random point where the bandit says so.
func (o proposer) random(l *loop.Loop, b *bandit, horizon int) loop.Strategy {
	always := o.options.Method == Alternate
	return func(context.Context, *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
		r := l.Request
		yes, chance := b.random(l.First+l.Picked, o.options.Method.group(), horizon, always, r.Rand)
		if !yes {
			return suggestion, false
		}
		p, err := r.Sampler.Draw(optimizer.Uniform(r.Rand))
		if err != nil {
			return suggestion, false // feasible points are rare: the model's candidates are all there are
		}
		suggestion = l.Pick(loop.Spot{Place: loop.Place{Point: p, X: r.Encoding.Encode(p)}})
		suggestion.Source = optimizer.SourceRandom
		suggestion.Reasons.Note = fmt.Sprintf(
			"drawn at random, to learn the model's hyperparameters: the bandit does so with probability %.2f", chance,
		)
		return suggestion, true
	}
}

// hyperparameters returns what the method finds for the observations of the model, at
// least one; several are samples. The last is where the next search begins.
func (o proposer) hyperparameters(ctx context.Context, m *model, warm *gp.Hyperparameters, rng *rand.Rand) ([]gp.Hyperparameters, error) {
	if o.options.Method == MCMC && warm != nil {
		return m.sample(ctx, *warm, false, rng), nil
	}
	x, y := m.data.X, m.data.Y
	if o.options.Method.pseudo() {
		x, y = m.pseudo(rng)
	}
	h, err := m.fit(ctx, x, y, warm, rng)
	if err != nil {
		return nil, err
	}
	if o.options.Method == MCMC {
		return m.sample(ctx, h, true, rng), nil
	}
	return []gp.Hyperparameters{h}, nil
}

// fit returns the models of the method, at least one. The error means that there is none.
func (o proposer) fit(ctx context.Context, r *optimizer.Request, d *surrogate.Data, memory *memory) ([]bayes.Surrogate, error) {
	m := newModel(r.Encoding, d, o.options.Prior)
	all, err := o.hyperparameters(ctx, m, memory.Fitted, r.Rand)
	if err != nil {
		memory.Fitted = nil
		return nil, err
	}
	if ctx.Err() == nil { // the next fit must not start from one that was cut short
		memory.Fitted = &all[len(all)-1]
	}
	var models []bayes.Surrogate
	for _, h := range all {
		process, failed := m.condition(h)
		if failed != nil {
			err = failed
			continue
		}
		models = append(models, bayes.Gaussian(process))
	}
	if len(models) == 0 {
		memory.Fitted = nil
		return nil, err
	}
	return models, nil
}

// Recommend implements optimizer.Recommender: the completed evaluation with the lowest
// posterior mean. Without a model it is the best value.
func (o proposer) Recommend(ctx context.Context, p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
	best := p.Best()
	encoding := optimizer.NewEncoding(p.Space)
	d := observe(p, encoding)
	if best == nil || d.Completed < loop.MinCompleted || encoding.Dim() == 0 {
		return best, nil
	}
	m, rng := newModel(encoding, d, o.options.Prior), optimizer.NewRand(p.Seed, len(p.Observations))
	fitted := readMemory(state, o.options.Method, encoding.Dim()+1).Fitted
	if fitted == nil {
		x, y := d.X, d.Y
		if o.options.Method.pseudo() {
			x, y = m.pseudo(rng)
		}
		h, err := m.fit(ctx, x, y, nil, rng)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("recommend: %w", ctx.Err())
		}
		if err != nil {
			return best, nil //nolint:nilerr // no model: the best value is still an answer
		}
		fitted = &h
	}
	process, err := m.condition(*fitted)
	if err != nil {
		return best, nil //nolint:nilerr // as above
	}
	if r := loop.Recommend(bayes.Gaussian(process), d, p, 0); r != nil {
		return r, nil
	}
	return best, nil
}
