package hebo

import (
	"context"
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// ErrNoModel means that the observations of a problem are too few, or too much alike, for
// a model.
var ErrNoModel = errors.New("no model can be fitted")

// Landscape is what a request knows before it picks its first point: the model, conditioned
// on the pending points, and the acquisition function. People read it to see why a point
// was picked; nothing is picked from it. It is not safe for concurrent use.
type Landscape struct {
	search *search
	model  *surrogate.Model
}

// NewLandscape returns the landscape of a problem for the optimiser with the given options.
// The model is fitted afresh to at most points observations. It can differ from that of
// Suggest, which continues from the fit of the request before. For MACE the acquisition
// function is the expected improvement, one of the three that MACE weighs up. The error is
// ctx's, or wraps ErrNoModel.
func NewLandscape(ctx context.Context, options Options, p *optimizer.Problem, points int) (*Landscape, error) {
	if options.Acquisition == MACE {
		options.Acquisition = EI
	}
	options.Plateaus = false
	options.Surrogate.Points = points
	v := &viewer{proposer: proposer{options, effort{candidates: 1}, nil}} // nothing is searched for
	// The guard prepares the request. It then misses a point, which it draws at random.
	_, _, err := optimizer.Guard(v).Suggest(ctx, p, nil, 1, optimizer.NewRand(p.Seed, p.First))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("fit the model: %w", ctx.Err())
	case v.err != nil:
		return nil, v.err
	case v.seen == nil && err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoModel, err)
	case v.seen == nil:
		return nil, fmt.Errorf("%w: the point is one of the study's initial points", ErrNoModel)
	}
	return v.seen, nil
}

// viewer is a proposer that keeps the landscape and proposes nothing.
type viewer struct {
	proposer
	seen *Landscape
	err  error
}

// Propose implements optimizer.Proposer.
func (v *viewer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	d := surrogate.Observe(r.Problem, r.Encoding, v.options.Surrogate)
	if d.Completed < loop.MinCompleted || r.Encoding.Dim() == 0 {
		v.err = fmt.Errorf("%w: completed trials: %d, at least %d are needed", ErrNoModel, d.Completed, loop.MinCompleted)
		return nil, nil, nil
	}
	m, err := surrogate.Fit(ctx, d, v.options.Surrogate, nil, r.Rand)
	if err != nil {
		v.err = fmt.Errorf("%w: %w", ErrNoModel, err)
		return nil, nil, nil
	}
	memory := readMemory(nil, 0)
	s := v.newSearch(ctx, r, m, v.feasibility(ctx, r, memory), nil, memory)
	v.seen = &Landscape{s, m}
	return nil, nil, nil
}

// Data returns the observations behind the model.
func (l *Landscape) Data() *surrogate.Data { return l.model.Data }

// Acquisition returns the name of the acquisition function. Its values are logarithms.
func (l *Landscape) Acquisition() string { return l.search.Criterion.Name() }

// At returns the acquisition function at some points, and the model's mean and variance
// there, without noise, as a suggestion has them. All of them take the pending points into
// account. The acquisition function also contains the probability that the evaluation
// completes, and the parameters' priors. There MUST be at least one point.
func (l *Landscape) At(points []study.Point) (worth, mean, variance []float64) {
	places := make([]loop.Place, len(points))
	for i, p := range points {
		places[i] = loop.Place{Point: p, X: l.search.Request.Encoding.Encode(p)}
	}
	mean, variance = l.search.Main.Fantasies.Posterior(loop.Rows(places))
	return l.search.Evaluate(places), mean, variance
}
