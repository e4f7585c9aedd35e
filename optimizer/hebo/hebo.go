// Package hebo is the optimiser that users call hebo, and gp in its plain form:
// Bayesian optimisation after HEBO (Cowen-Rivers et al. 2022), made asynchronous.
// The package surrogate models the objective: outcomes transformed to look normal,
// a Matérn and a linear kernel, a learnt mean, and parameters warped where that is
// asked for. Points are chosen by one acquisition function or by the Pareto front
// of three (MACE), one after another, each as if those before it and all that are
// still being evaluated had come back with simulated values. Where evaluations are
// noisy, promising points are evaluated again.
//
// Failed and infeasible evaluations are kept out of that model. Where evaluations
// complete is modelled instead, and the acquisition function multiplied by the
// probability that one does. A study with more than surrogate.MaxPoints observations
// is modelled by some of them: the best, the latest, and an even share of the rest.
package hebo

import (
	"context"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/optimizer/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// Fantasy says how points that are still being evaluated enter the model.
type Fantasy string

// The ways of handling pending points.
const (
	// Believer takes the posterior mean for the value (the kriging believer):
	// the mean stays as it is, and the uncertainty around the point shrinks.
	Believer Fantasy = "believer"
	// Draws averages the acquisition over several joint draws of the values.
	Draws Fantasy = "draws"
	// LiarMin, LiarMean and LiarMax take the lowest, the mean or the highest
	// observed value for that of each pending point (constant liars).
	LiarMin  Fantasy = "liar-min"
	LiarMean Fantasy = "liar-mean"
	LiarMax  Fantasy = "liar-max"
	// Penalty leaves the model alone, and keeps away from pending points by a
	// factor on the acquisition function (local penalisation).
	Penalty Fantasy = "penalty"
	// Thompson chooses the minimum of a function that is drawn from the
	// posterior: it needs no acquisition function, and chance keeps its points apart.
	Thompson Fantasy = "thompson"
	// None ignores pending points, but for not repeating them.
	None Fantasy = "none"
)

// Acquisition says what a point is chosen by.
type Acquisition string

// The acquisition functions.
const (
	// LogEI is the logarithm of the expected improvement over the best
	// posterior mean at an evaluated or pending point.
	LogEI Acquisition = "logei"
	// UCB is the upper confidence bound on how good the point is.
	UCB Acquisition = "ucb"
	// LogPI is the logarithm of the probability of an improvement.
	LogPI Acquisition = "logpi"
	// Portfolio takes LogEI, and UCB for every fourth trial: the greedy criterion
	// of a model that is too sure of itself never finds out.
	Portfolio Acquisition = "portfolio"
	// MACE chooses from the Pareto front of all three.
	MACE Acquisition = "mace"
)

// Fit says when hyperparameters are searched for in full.
type Fit string

// When they are.
const (
	// FitWarm takes a few steps from those of the last request.
	FitWarm Fit = "warm"
	// FitFull searches from several places in every request.
	FitFull Fit = "full"
	// FitDoubling does so whenever the evaluations have doubled.
	FitDoubling Fit = "doubling"
)

// effort is that of the fit to so many completed evaluations, where the last full
// one was to lastFull, 0 where there has been none.
func (f Fit) effort(completed, lastFull int) surrogate.Effort {
	if f == FitFull || f == FitDoubling && completed >= 2*lastFull {
		return surrogate.EffortFull
	}
	return surrogate.EffortWarm
}

// Noise says what is known of the noise of evaluations.
type Noise string

// What can be known of it.
const (
	NoiseAuto Noise = "auto"
	NoiseYes  Noise = "yes"
	NoiseNo   Noise = "no"
)

// of is what is known of the noise of the places' evaluations.
func (n Noise) of(places []surrogate.Place) surrogate.Noise {
	switch n {
	case NoiseYes:
		return surrogate.Noisy
	case NoiseNo:
		return surrogate.NoiseFree
	default:
		return surrogate.NoiseOf(places)
	}
}

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Surrogate   surrogate.Options // its Effort is Fit's
	Fit         Fit
	Initial     int
	Fantasy     Fantasy
	Draws       int
	Acquisition Acquisition
	Kappa       float64
	Candidates  int
	Restarts    int
	Replicate   bool
	Robust      bool
	Population  int
	Generations int
	PriorWeight float64
	Noise       Noise
	TrustRegion bool
	Escape      bool
	Plateaus    bool
}

// Settings returns the settings with HEBO's defaults.
func Settings() setting.Set {
	return setting.Set{
		{Name: "warp", Default: false, Doc: "Warp parameters (Kumaraswamy), for objectives that change fast near a bound."},
		{Name: "transform", Default: true, Doc: "Transform outcomes to look normal (Box-Cox or Yeo-Johnson)."},
		{
			Name: "kernel", Default: string(surrogate.Matern52), Choices: []string{string(surrogate.Matern32), string(surrogate.Matern52)},
			Doc: "Matérn kernel of the model, differentiable once (3/2) or twice (5/2).",
		},
		{
			Name: "lengthscales", Default: string(surrogate.LengthscalesScaled),
			Choices: []string{string(surrogate.LengthscalesScaled), string(surrogate.LengthscalesShort), string(surrogate.LengthscalesFlat)},
			Doc:     "Prior on the lengthscales: scaled with the dimension, short, or flat.",
		},
		{
			Name: "fit", Default: string(FitWarm), Choices: []string{string(FitWarm), string(FitFull), string(FitDoubling)},
			Doc: "How thoroughly each request searches for the model's hyperparameters.",
		},
		{Name: "linear", Default: true, Doc: "Add a linear kernel to the Matérn kernel, for trends."},
		{
			Name: "initial", Default: 0, Min: 0, Max: 10000,
			Doc: "Trials of the initial design; 0 derives it from parameters and budget.",
		},
		{
			Name: "fantasy", Default: string(Believer), Choices: []string{
				string(Believer), string(Draws), string(LiarMin), string(LiarMean), string(LiarMax), string(Penalty), string(Thompson), string(None),
			},
			Doc: "How points that are still being evaluated enter the model.",
		},
		{Name: "draws", Default: 16, Min: 1, Max: 256, Doc: "Number of draws, for fantasy: draws."},
		{
			Name: "acquisition", Default: string(LogEI), Choices: []string{string(LogEI), string(LogPI), string(UCB), string(Portfolio), string(MACE)},
			Doc: "Acquisition function that chooses the points.",
		},
		{Name: "kappa", Default: 0.0, Min: 0, Max: 100, Doc: "Weight of uncertainty for ucb, portfolio and mace; 0 is HEBO's schedule."},
		{Name: "candidates", Default: 1000, Min: 10, Max: 20000, Doc: "Number of points from which the search of the acquisition function starts."},
		{Name: "restarts", Default: 4, Min: 0, Max: 64, Doc: "Number of candidates that a local search improves; 0 takes the best as it is."},
		{Name: "robust", Default: true, Doc: "Add random noise to the acquisition functions, for acquisition: mace."},
		{Name: "population", Default: 100, Min: 4, Max: 1000, Doc: "Population of the search for the Pareto front, for acquisition: mace."},
		{Name: "generations", Default: 100, Min: 1, Max: 1000, Doc: "Generations of the search for the Pareto front, for acquisition: mace."},
		{
			Name: "failures", Default: string(surrogate.FailuresModel),
			Choices: []string{string(surrogate.FailuresModel), string(surrogate.FailuresWorst), string(surrogate.FailuresIgnore)},
			Doc:     "How failed evaluations count: a model of failure, the worst value, not at all.",
		},
		{Name: "priorWeight", Default: 0.0, Min: 0, Max: 1e6, Doc: "How long the priors of parameters keep weight; 0 is a tenth of the budget."},
		{Name: "trustRegion", Default: false, Doc: "Choose every second point near the best one (TuRBO), for narrow valleys."},
		{Name: "escape", Default: false, Doc: "Draw every second point at random once a noisy search has contracted."},
		{Name: "plateaus", Default: true, Doc: "Leave places where points gave exactly the same value."},
		{
			Name: "noise", Default: string(NoiseAuto), Choices: []string{string(NoiseAuto), string(NoiseYes), string(NoiseNo)},
			Doc: "Whether repeated evaluations of one point differ; auto finds out.",
		},
		{Name: "replicate", Default: true, Doc: "When evaluations are noisy, re-evaluate promising points (at most 30%)."},
	}
}

// PlainSettings returns the settings with the defaults of a plain Gaussian
// process: neither input nor outcomes are warped.
func PlainSettings() setting.Set {
	plain := map[string]any{"transform": false, "linear": false}
	set := Settings()
	for i, s := range set {
		if value, differs := plain[s.Name]; differs {
			set[i].Default = value
		}
	}
	return set
}

// FromSettings returns the options that checked settings ask for.
func FromSettings(v setting.Values) Options {
	return Options{
		Surrogate: surrogate.Options{
			Warp: v.Bool("warp"), Transform: v.Bool("transform"),
			Kernel: surrogate.Smoothness(v.String("kernel")), Linear: v.Bool("linear"),
			Lengthscales: surrogate.Lengthscales(v.String("lengthscales")),
			Failures:     surrogate.Failures(v.String("failures")),
		},
		Fit:         Fit(v.String("fit")),
		Initial:     v.Int("initial"),
		Fantasy:     Fantasy(v.String("fantasy")),
		Draws:       v.Int("draws"),
		Acquisition: Acquisition(v.String("acquisition")),
		Kappa:       v.Float("kappa"),
		Candidates:  v.Int("candidates"),
		Restarts:    v.Int("restarts"),
		Replicate:   v.Bool("replicate"),
		Robust:      v.Bool("robust"),
		Population:  v.Int("population"),
		Generations: v.Int("generations"),
		PriorWeight: v.Float("priorWeight"),
		TrustRegion: v.Bool("trustRegion"),
		Escape:      v.Bool("escape"),
		Plateaus:    v.Bool("plateaus"),
		Noise:       Noise(v.String("noise")),
	}
}

// DefaultOptions returns the defaults of Settings.
func DefaultOptions() Options {
	v, err := Settings().Parse(nil)
	if err != nil {
		panic(err) // nothing was given that could be wrong
	}
	return FromSettings(v)
}

// New returns the optimiser. The options are those of FromSettings or
// DefaultOptions, possibly changed within the bounds of Settings.
func New(options Options) optimizer.Optimizer { return optimizer.Guard(proposer{options}) }

type proposer struct{ options Options }

// Noisy reports whether evaluations are known to be noisy beforehand, to
// optimizer.Guard.
func (o proposer) Noisy() bool { return o.options.Noise == NoiseYes && o.options.Replicate }

// minCompleted is the number of completed evaluations from which a model says
// more than an even spread of points.
const minCompleted = 2

// Propose implements optimizer.Proposer. When ctx ends it goes on in short: with
// the model and the candidates that it has, and without a search among them.
func (o proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	memory := readMemory(r.State, o.options.Surrogate.NumParams(r.Encoding))
	memory.checkFailures(r.Encoding.Dim())
	design := min(r.N, max(0, o.initial(r)-len(r.Observations)-len(r.Pending)))
	d := surrogate.Observe(r.Problem, r.Encoding, o.options.Surrogate)
	switch {
	case d.Completed < minCompleted || r.Encoding.Dim() == 0:
		design = r.N
	case r.Remaining != nil:
		design = min(design, len(r.Remaining))
	}
	batch, err := memory.design(ctx, r, nil, design)
	if err != nil || len(batch) == r.N || len(batch) < design {
		return batch, memory.state(), err
	}
	config := o.options.Surrogate
	config.Effort = o.options.Fit.effort(d.Completed, memory.Full)
	m, err := surrogate.Fit(ctx, d, config, memory.Fitted, r.Rand)
	if m == nil {
		return memory.withoutModel(ctx, r, batch, err)
	}
	if err == nil { // of a fit that was cut short the next one learns nothing
		memory.remember(m.GP.Hyperparameters())
		if config.Effort == surrogate.EffortFull {
			memory.Full = d.Completed
		}
	}
	s := o.newSearch(ctx, r, m, o.feasibility(ctx, r, memory), batch, memory)
	for len(batch) < r.N {
		suggestion, ok := s.next(ctx)
		if !ok {
			break // the guard draws what is missing
		}
		if ctx.Err() != nil {
			suggestion.Reasons.Note += cutShort
		}
		batch = append(batch, suggestion)
	}
	return batch, memory.state(), nil
}

// feasibility returns the model of where evaluations complete; nil where there is
// none, because nothing has failed, failures are handled otherwise, or there is no
// fitting it.
func (o proposer) feasibility(ctx context.Context, r *optimizer.Request, memory *memory) *surrogate.Feasibility {
	if o.options.Surrogate.Failures != surrogate.FailuresModel {
		return nil
	}
	f, err := surrogate.FitFeasibility(ctx, r.Problem, r.Encoding, memory.Failures, r.Rand)
	if f == nil || err != nil {
		return nil
	}
	if ctx.Err() == nil {
		memory.rememberFailures(f.Hyperparameters())
	}
	return f
}

// cutShort ends the note of a point that was found without all of the search.
const cutShort = "; the time for this suggestion ran out"

// initial returns the number of trials of the initial design. A model of d
// lengthscales says little before d+1 points; where the budget is small, most of
// it should still go to the model.
func (o proposer) initial(r *optimizer.Request) int {
	if o.options.Initial > 0 {
		return o.options.Initial
	}
	return max(4, min(r.Encoding.Dim()+1, r.MaxTrials/4))
}

// design returns the next n points of the study's Sobol sequence, after those of
// batch. Where a finite space has fewer left and may repeat points, the rest are
// known ones.
func (m *memory) design(ctx context.Context, r *optimizer.Request, batch []optimizer.Suggestion, n int) ([]optimizer.Suggestion, error) {
	left := n
	if r.Remaining != nil && r.Repeats {
		left = min(n, len(r.Remaining)-len(batch))
	}
	points, err := m.sequence(ctx, r, left)
	if err != nil || len(points) < left || left == n {
		return points, err
	}
	return append(points, known(r, slices.Concat(batch, points), n-left)...), nil
}

// known returns n points that were observed, are pending or are in the batch, one
// after another.
func known(r *optimizer.Request, batch []optimizer.Suggestion, n int) []optimizer.Suggestion {
	var points []study.Point
	for _, o := range r.Observations {
		points = append(points, o.Point)
	}
	for _, p := range r.Pending {
		points = append(points, p.Point)
	}
	for _, b := range batch {
		points = append(points, b.Point)
	}
	again := make([]optimizer.Suggestion, n)
	for i := range again {
		again[i] = optimizer.Suggestion{
			Point: points[(r.First+len(batch)+i)%len(points)], Repeat: true, Source: optimizer.SourceDesign,
			Reasons: optimizer.Reasons{
				Pending: len(r.Pending) + len(batch) + i,
				Note:    "evaluated again: no other point is left, and too few have completed for a model",
			},
		}
	}
	return again
}

// sequence returns the next n points of the study's Sobol sequence.
func (m *memory) sequence(ctx context.Context, r *optimizer.Request, n int) ([]optimizer.Suggestion, error) {
	if n == 0 {
		return nil, nil
	}
	sequence := sobol.NewSequence(r, m.Cursor)
	if b := newBeliefs(r.Encoding); b != nil {
		sequence.Map = b.draw
	}
	batch, err := sequence.Propose(ctx, r, n)
	m.Cursor = sequence.Next
	for i := range batch {
		batch[i].Reasons.Note = "initial design: " + batch[i].Reasons.Note
	}
	return batch, err
}

// withoutModel completes a batch from the Sobol sequence where no model could be
// fitted to the observations.
func (m *memory) withoutModel(ctx context.Context, r *optimizer.Request, batch []optimizer.Suggestion, why error) ([]optimizer.Suggestion, optimizer.State, error) {
	// What is left to do takes no time.
	rest, err := m.design(context.WithoutCancel(ctx), r, batch, r.N-len(batch))
	for i := range rest {
		rest[i].Source = optimizer.SourceFallback
		if rest[i].Repeat {
			continue
		}
		rest[i].Reasons.Pending += len(batch)
		rest[i].Reasons.Note = "next point of the scrambled Sobol sequence: no model could be fitted: " + why.Error()
	}
	m.Fitted = nil
	return append(batch, rest...), m.state(), err
}
