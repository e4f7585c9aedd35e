// Package pt implements Bayesian optimisation with a probabilistic transformer
// (Maraval et al. 2022, Sample-Efficient Optimisation with Probabilistic Transformer
// Surrogates). The transformer was trained once on draws from Gaussian processes. It
// predicts the distribution of the outcome at any point from the evaluations so far, without
// fitting anything to them. Where no transformer was trained for the number of columns or of
// evaluations, another optimiser chooses the points.
package pt

import (
	"context"
	"encoding/json"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/network"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Acquisition selects how a point is chosen.
type Acquisition string

// The acquisition functions.
const (
	EI  Acquisition = "logei" // the logarithm of the expected improvement
	PI  Acquisition = "logpi" // the logarithm of the probability of an improvement
	UCB Acquisition = "ucb"   // the upper confidence bound on the point's reward
)

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Initial     int
	Acquisition Acquisition
	Kappa       float64
	Transform   bool
}

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{Name: "initial", Default: 0, Min: 0, Max: 10000, Doc: "Trials of the initial design; 0 derives it from parameters and budget."},
		{
			Name: "acquisition", Default: string(EI), Choices: []string{string(EI), string(PI), string(UCB)},
			Doc: "Acquisition function that chooses the points.",
		},
		{Name: "kappa", Default: 2.0, Min: 0, Max: 8, Doc: "Standard deviations that ucb adds; more explore more."},
		{Name: "transform", Default: true, Doc: "Transform outcomes to look normal (Box-Cox or Yeo-Johnson)."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{
		Initial: v.Int("initial"), Acquisition: Acquisition(v.String("acquisition")),
		Kappa: v.Float("kappa"), Transform: v.Bool("transform"),
	}
}

// New returns the optimiser. The successor chooses the points where no model was
// trained, and recommends a point.
func New(o Options, models *Models, successor Successor) optimizer.Optimizer {
	return optimizer.Guard(proposer{options: o, models: models, successor: successor})
}

// Successor takes over where no model was trained: in spaces that are too large, and after too
// many evaluations.
type Successor interface {
	optimizer.Optimizer
	optimizer.Recommender
}

type proposer struct {
	options   Options
	models    *Models
	successor Successor
}

// memory is the optimiser's state.
type memory struct {
	loop.Design
	// Successor is the state of the optimiser that took over; nil if it did not.
	Successor optimizer.State `json:"beyond,omitempty"`
}

// readMemory returns what is in a state, or nothing.
func readMemory(state optimizer.State) memory {
	var m memory
	if json.Unmarshal(state, &m) != nil {
		return memory{}
	}
	return m
}

// state encodes the memory. Without room for the state of the optimiser that took over, that
// one starts afresh each time.
func (m *memory) state() optimizer.State {
	return loop.Encode(m, func() { m.Successor = nil })
}

// least is the number of evaluations from which on the transformer predicts: fewer were
// not seen in training.
const least = 4

// Propose implements optimizer.Proposer.
func (a proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	memory := readMemory(r.State)
	c := newCoder(r.Encoding)
	d := surrogate.Observe(r.Problem, r.Encoding, surrogate.Options{Transform: a.options.Transform, Failures: surrogate.FailuresModel})
	if c.columns > 0 {
		model, why, err := a.models.of(c.columns, len(d.Y)+len(r.Pending)+r.N)
		if err != nil {
			return nil, r.State, err
		}
		if model == nil {
			return a.handOver(ctx, r, memory, why)
		}
		c.model = model
	}
	due := loop.Due(r, loop.Initial(a.options.Initial, r), d.Completed)
	if len(d.Y) < least {
		due = r.N
	}
	batch, err := memory.Points(ctx, r, nil, due)
	if err != nil || len(batch) == r.N || len(batch) < due {
		return batch, memory.state(), err
	}
	s := newSearch(ctx, r, a.options, c, d, batch)
	batch, err = r.Extend(ctx, batch, r.N, func() (optimizer.Suggestion, error) { return s.next(ctx) })
	return batch, memory.state(), err
}

// handOver lets the other optimiser choose the points, and notes why.
func (a proposer) handOver(
	ctx context.Context, r *optimizer.Request, m memory, why string,
) ([]optimizer.Suggestion, optimizer.State, error) {
	batch, state, err := a.successor.Suggest(ctx, r.Problem, m.Successor, r.N, r.Rand)
	m.Successor = state
	for i := range batch {
		if note := &batch[i].Reasons.Note; *note == "" {
			*note = why
		} else {
			*note += "; " + why
		}
	}
	return batch, m.state(), err
}

var _ optimizer.Recommender = proposer{}

// Recommend implements optimizer.Recommender. The other optimiser recommends: the
// transformer averages over neighbours, and so misses narrow optima.
func (a proposer) Recommend(ctx context.Context, p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
	return a.successor.Recommend(ctx, p, readMemory(state).Successor)
}

// coder turns points into rows of the transformer's columns: one for each parameter that is
// a number or in an order, and one for each choice of a categorical one.
type coder struct {
	encoding *optimizer.Encoding
	columns  int
	model    *network.Model
}

func newCoder(e *optimizer.Encoding) *coder {
	c := &coder{encoding: e}
	for _, column := range e.Columns() {
		c.columns += choices(column)
	}
	return c
}

// choices returns how many columns of the transformer a column becomes. Two choices need
// one.
func choices(c optimizer.Column) int {
	if c.Categorical() && c.Levels > 2 {
		return c.Levels
	}
	return 1
}

// row returns the row of a point whose coordinates are at. A parameter that is inactive has
// ½ in its columns.
func (c *coder) row(p study.Point, at []float64) []float64 {
	row := make([]float64, 0, c.columns)
	for i, column := range c.encoding.Columns() {
		_, active := p[column.Parameter.Name]
		n := choices(column)
		for k := range n {
			u := at[i]
			switch {
			case !active:
				u = 0.5
			case n > 1 && column.Level(at[i]) == k:
				u = 1
			case n > 1:
				u = 0
			}
			row = append(row, u)
		}
	}
	return row
}
