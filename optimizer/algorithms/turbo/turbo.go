// Package turbo implements the optimiser turbo: TuRBO-1 (Eriksson et al. 2019, Scalable
// Global Optimization via Local Bayesian Optimization), made asynchronous. It searches a
// box around the best point, the trust region, by Thompson sampling. The box grows while
// points in it improve on the best one and shrinks while they do not. When it has become
// too small, the search begins again elsewhere and forgets what was evaluated before.
//
// The size of the region is replayed from the outcomes, so it needs no state.
package turbo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Initial   int
	Warp      bool
	Transform bool
}

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{Name: "initial", Default: 0, Min: 0, Max: 10000, Doc: "Trials of each initial design; 0 derives it from parameters and budget."},
		{Name: "warp", Default: false, Doc: "Learn a monotone warp of each numeric parameter, as HEBO does."},
		{Name: "transform", Default: false, Doc: "Transform outcomes to look normal (Box-Cox or Yeo-Johnson)."},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{Initial: v.Int("initial"), Warp: v.Bool("warp"), Transform: v.Bool("transform")}
}

// New returns the optimiser. The options MUST come from FromSettings. The recommender
// recommends a point: the model of a trust region knows only what was evaluated since the
// last restart.
func New(o Options, recommender optimizer.Recommender) optimizer.Optimizer {
	return optimizer.Guard(proposer{o, recommender})
}

type proposer struct {
	options     Options
	recommender optimizer.Recommender
}

var _ optimizer.Recommender = proposer{}

// Recommend implements optimizer.Recommender.
func (o proposer) Recommend(ctx context.Context, p *optimizer.Problem, _ optimizer.State) (*optimizer.Recommendation, error) {
	return o.recommender.Recommend(ctx, p, nil)
}

// memoryVersion changes when the meaning of a memory changes.
const memoryVersion = 1

// memory is the optimiser's state.
type memory struct {
	Version int `json:"version"`
	loop.Design
	// Fitted are the hyperparameters that the next fit starts from; nil before the first
	// since the restart at the observation Since.
	Fitted *gp.Hyperparameters `json:"fitted,omitempty"`
	Since  int                 `json:"since,omitempty"`
}

// readMemory returns the memory in a state, or a fresh one if the state has another
// version or number of kernel hyperparameters.
func readMemory(state optimizer.State, params int) *memory {
	var m memory
	if json.Unmarshal(state, &m) != nil || m.Version != memoryVersion || m.Cursor > math.MaxUint32 {
		return &memory{Version: memoryVersion}
	}
	if h := m.Fitted; h != nil && (len(h.Kernel) != params || !(h.Noise > 0)) {
		m.Fitted = nil
	}
	return &m
}

// state encodes the memory. With thousands of columns it leaves the hyperparameters out.
func (m *memory) state() optimizer.State {
	return loop.Encode(m, func() { m.Fitted = nil })
}

// initial returns the number of trials of the design: two for each column, as the paper's
// program has it, but no more than a quarter of the budget.
func (o proposer) initial(r *optimizer.Request) int {
	if o.options.Initial > 0 {
		return o.options.Initial
	}
	return max(4, min(2*r.Encoding.Dim(), r.MaxTrials/4))
}

// Propose implements optimizer.Proposer. When ctx ends, it fits no further.
func (o proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	model := surrogate.Options{
		Kernel: surrogate.Matern52, Warp: o.options.Warp, Transform: o.options.Transform, Failures: surrogate.FailuresModel,
	}
	memory := readMemory(r.State, model.NumParams(r.Encoding))
	initial := o.initial(r)
	side, since := loop.Side(costs(r.Problem), max(1, r.Parallelism), r.Encoding.Dim(), initial)
	if since != memory.Since {
		memory.Since, memory.Fitted = since, nil
	}
	feasible := surrogate.FitFeasibility(ctx, r.Problem, r.Encoding, nil, r.Rand)
	run := *r
	problem := *r.Problem
	problem.Observations = problem.Observations[since:]
	run.Problem = &problem
	d := surrogate.Observe(&problem, r.Encoding, model)
	due := loop.Due(&run, initial, d.Completed)
	batch, err := memory.Propose(ctx, r, due, func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error) {
		fitted, err := surrogate.Fit(ctx, d, model, memory.Fitted, r.Rand)
		if fitted == nil {
			return batch, err
		}
		h := fitted.GP.Hyperparameters()
		memory.Fitted = &h
		process := bayes.Gaussian(fitted.GP)
		l := loop.New(ctx, loop.Input{
			Request: &run, Data: fitted.Data, Models: []bayes.Surrogate{process}, Feasibility: feasible,
			Criterion: acquisition.EI{}, Batch: batch,
		}, loop.Options{IgnorePending: true, Candidates: outside})
		drawn := sample(l, loop.NewRegion(process, fitted.Data, side), reason(side, since))
		return l.Fill(ctx, batch, r.N, append([]loop.Strategy{drawn}, l.Plain()...)), nil
	})
	return batch, memory.state(), err
}

// outside is where a search of the whole space starts, if all candidates of the trust region
// are taken.
const outside = 200

// costs returns the outcomes of all observations, lower being better; +Inf where none was
// measured.
func costs(p *optimizer.Problem) []float64 {
	y := make([]float64, len(p.Observations))
	for i, o := range p.Observations {
		if y[i] = math.Inf(1); o.Outcome == optimizer.OutcomeCompleted {
			y[i] = p.Direction.Cost(o.Values[0])
		}
	}
	return y
}

// reason says where a point comes from.
func reason(side float64, since int) string {
	why := fmt.Sprintf("the lowest of a function drawn from the model, in a trust region of side %.3g", side)
	if since > 0 {
		why += fmt.Sprintf(", which was restarted after %d trials", since)
	}
	return why
}

// The candidates over which a function is drawn: a number for each column, as in the paper,
// within bounds. A draw costs their number to the third power, so the upper bound is lower
// than the paper's 5,000.
const (
	eachColumn      = 100
	leastCandidates = 200
	mostCandidates  = 1000
)

// sample returns a strategy that picks the lowest point, in the trust region, of a function
// drawn from the model. It leaves the choice to others where the region has no candidate.
func sample(l *loop.Loop, region *loop.Region, why string) loop.Strategy {
	var drawn *loop.Drawn
	return func(ctx context.Context, _ *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
		r := l.Request
		if drawn == nil {
			count := min(max(leastCandidates, eachColumn*r.Encoding.Dim()), mostCandidates)
			if ctx.Err() != nil {
				count = leastCandidates
			}
			// A function for each point of the request.
			if drawn = l.Draw(loop.Gather(nil, r, count, region.Stream(r), l.Taken), r.N); drawn == nil {
				return suggestion, false
			}
		}
		best, ok := drawn.Lowest()
		if !ok {
			return suggestion, false
		}
		best.Why = why
		return l.Pick(best), true
	}
}
