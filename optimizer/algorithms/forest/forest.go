// Package forest implements Bayesian optimisation with a random forest, as SMAC does
// (Hutter et al. 2011; Lindauer et al. 2022, SMAC3): the forest predicts the outcome of
// a point and how unsure it is, and the point with the largest expected improvement is
// evaluated next. Trees split categories into sets and set inactive parameters apart, so
// they suit spaces with conditions and categories. Points that are being evaluated are
// taken to have the value that the forest predicts for them.
package forest

import (
	"context"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Initial int
	Trees   int
	Leaf    int
	Random  float64
}

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{Name: "initial", Default: 0, Min: 0, Max: 10000, Doc: "Trials of the initial design; 0 derives it from parameters and budget."},
		{Name: "trees", Default: 30, Min: 2, Max: 1000, Doc: "Number of trees; more are smoother and slower."},
		{Name: "leaf", Default: 1, Min: 1, Max: 100, Doc: "Least number of evaluations in a leaf; more average out noise."},
		{Name: "random", Default: 0.1, Min: 0, Max: 1, Doc: "Share of points that are drawn at random, against blind spots."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{Initial: v.Int("initial"), Trees: v.Int("trees"), Leaf: v.Int("leaf"), Random: v.Float("random")}
}

// New returns the optimiser. Its state is the position in the Sobol sequence of the
// initial design.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(proposer{options: o}) }

type proposer struct{ options Options }

// initial returns the number of trials of the initial design: two for each parameter, at
// most a quarter of the budget, and at least four.
func (o Options) initial(r *optimizer.Request) int {
	if o.Initial > 0 {
		return o.Initial
	}
	return max(4, min(2*(r.Encoding.Dim()+1), r.MaxTrials/4))
}

// Foresees tells optimizer.Guard that a forest may begin with what running trials will probably reach.
func (proposer) Foresees() bool { return true }

// Propose implements optimizer.Proposer.
func (a proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	sequence := sobol.Resume(r)
	// The design ends by the number of trials, but lasts until something has ended.
	design := max(0, min(r.N, a.options.initial(r)-r.First+1))
	if len(r.Observations) == 0 || r.Encoding.Dim() == 0 {
		design = r.N
	}
	batch, err := sequence.Propose(ctx, r, design)
	if err != nil || len(batch) < design || design == r.N {
		return batch, sequence.State(), err
	}
	s := newSearch(ctx, r, a.options)
	for _, b := range batch {
		s.pend(b.Point)
	}
	batch, err = r.Extend(ctx, batch, r.N, s.next)
	return batch, sequence.State(), err
}

// Recommend implements optimizer.Recommender: the completed evaluation whose predicted
// outcome is best, between the forest's mean and the observed value: the forest also
// averages over neighbours that are truly worse. Its mean is the observed value, and its
// standard deviation 0, since the forest's scale has no unit.
func (a proposer) Recommend(ctx context.Context, p *optimizer.Problem, _ optimizer.State) (*optimizer.Recommendation, error) {
	best := p.Best()
	c := newCoder(optimizer.NewEncoding(p.Space))
	if best == nil || len(c.features) == 0 {
		return best, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x, y := c.rows(p), outcomes(p)
	m := newModel(x, y, c.features, recommendTrees, a.options.growth(), optimizer.NewRand(p.Seed, len(p.Observations)))
	scores := make([]float64, len(y))
	for i := range y {
		scores[i] = math.Inf(1)
		if p.Observations[i].Outcome == optimizer.OutcomeCompleted {
			mean, _ := m.predict(x[i])
			scores[i] = (mean + y[i]) / 2
		}
	}
	least := slices.Index(scores, slices.Min(scores))
	o := p.Observations[least]
	return &optimizer.Recommendation{Trial: o.Trial, Mean: o.Values.First(), Point: o.At()}, nil
}

// recommendTrees is the number of trees of a recommendation, which is asked for seldom.
const recommendTrees = 100

// splitFeatures is the share of the features that a split chooses from, as in SMAC.
const splitFeatures = 5.0 / 6

func (o Options) growth() growth { return growth{leaf: o.Leaf, features: splitFeatures} }

// rows returns the rows of the observed points.
func (c *coder) rows(p *optimizer.Problem) [][]float64 {
	x := make([][]float64, len(p.Observations))
	for i, o := range p.Observations {
		x[i] = c.row(o.At())
	}
	return x
}
