package hebo

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

const (
	// fewestLooks make a model of curves.
	fewestLooks = 8
	// Each trial whose number is a multiple of exploreEvery is spread over the space, once exploreFrom have ended. Where all curves
	// look alike, as those of trainings that learn nothing, the model would search on among them.
	exploreEvery, exploreFrom = 5, 8
)

// curved is what a model of curves is made of.
type curved struct {
	list  []curves.Curve
	looks int
	// untold is how many pending points of the optimiser's request are not among those of request.
	untold int
	// request is the one whose pending points have reported nothing. The model knows the others.
	request *optimizer.Request
}

// curved returns the curves of a request; nil if points are chosen by how trials have ended, and not by what they reported on the way.
// It is not tried together with limits and earlier studies.
func (o proposer) curved(r *optimizer.Request) *curved {
	if r.Last == 0 || r.Asked == nil || len(r.Asked.Objectives)+len(r.Limits) > 0 ||
		o.options.Paper || o.options.Acquisition != EI || o.options.Surrogate.Earlier != nil {
		return nil
	}
	known := map[int][]curves.Report{}
	for _, c := range r.Curves {
		for _, look := range c.Looks {
			known[c.Trial] = append(known[c.Trial], curves.Report{Step: look.Step, Cost: look.Cost})
		}
	}
	c, other, problem := &curved{}, *r, *r.Problem
	var all []curves.Curve
	for i := range r.Asked.Observations {
		observed := &r.Asked.Observations[i]
		reports := known[observed.Trial]
		// A completed trial's curve ends with its value, also if it ended before the last step.
		if observed.Outcome == optimizer.OutcomeCompleted && len(reports) > 0 && reports[len(reports)-1].Step < r.Last {
			reports = append(reports, curves.Report{Step: r.Last, Cost: r.Direction.Cost(observed.Values.First())})
		}
		if observed.Outcome == optimizer.OutcomePruned && len(reports) == 0 { // it has diverged, which is worse than any cost
			reports = []curves.Report{{Step: max(1, observed.Step), Cost: math.Inf(1)}}
		}
		if len(reports) > 0 {
			all = append(all, curves.Curve{X: r.Encoding.Encode(observed.At()), Reports: reports})
		}
	}
	problem.Pending = nil
	for _, p := range r.Asked.Pending {
		if reports := known[p.Trial]; len(reports) > 0 {
			all = append(all, curves.Curve{X: r.Encoding.Encode(p.Point), Reports: reports, Runs: true})
			continue
		}
		problem.Pending = append(problem.Pending, p)
	}
	c.untold = len(r.Pending) - len(problem.Pending)
	for _, i := range curves.Select(all, func(i int) bool { return all[i].Runs }) {
		c.list = append(c.list, all[i])
		if !math.IsInf(curves.Least(all[i].Reports), 1) {
			c.looks += len(all[i].Reports)
		}
	}
	if c.looks < fewestLooks {
		return nil
	}
	other.Problem = &problem
	c.request = &other
	return c
}

// fillByCurves adds the points to a batch that are expected to end best, by what trials reported on the way. The data say around which
// points to look for them. It reports false, and adds none, if there is no model.
func (o proposer) fillByCurves(
	ctx context.Context, c *curved, d *surrogate.Data, feasible *surrogate.Feasibility, memory *memory, batch []optimizer.Suggestion,
) ([]optimizer.Suggestion, bool) {
	r, columns := c.request, surrogate.Columns(c.request.Encoding)
	if h := memory.Curves; h != nil && len(h.Kernel) != curves.KernelSize(len(columns)) {
		memory.Curves, memory.Looks = nil, 0
	}
	fit := curves.Due(c.looks, memory.Looks)
	model, err := curves.New(ctx, columns, c.list, r.Last, memory.Curves, fit, r.Rand)
	if err != nil {
		return batch, false
	}
	if fit {
		memory.rememberCurves(model.Hyperparameters(), c.looks)
	}
	l := loop.New(ctx, loop.Input{
		Request: r, Data: d, Models: []bayes.Surrogate{model.Final()}, Criterion: acquisition.EI{}, Feasibility: feasible, Batch: batch,
		Moments: func(mean, variance float64) (m, sd float64) {
			m, sd = model.Moments(mean, variance)
			return r.Direction.Cost(m), sd
		},
	}, loop.Options{Candidates: o.effort.candidates, PriorWeight: o.options.PriorWeight, Cost: o.cost(ctx, r)})
	explore := func(ctx context.Context, _ *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
		if (l.First+l.Picked)%exploreEvery != 0 || len(r.Asked.Observations) < exploreFrom {
			return suggestion, false
		}
		points, err := memory.Points(ctx, r, nil, 1)
		if err != nil || len(points) == 0 {
			return suggestion, false
		}
		suggestion = l.Pick(loop.Spot{Place: loop.Place{Point: points[0].Point, X: r.Encoding.Encode(points[0].Point)}})
		suggestion.Source, suggestion.Reasons.Note = optimizer.SourceDesign, "each fifth trial is spread over the space"
		return suggestion, true
	}
	before := len(batch)
	batch = l.Fill(ctx, batch, r.N, append([]loop.Strategy{explore}, l.Plain()...))
	for i := range batch[before:] {
		s := &batch[before+i]
		if s.Reasons.Pending += c.untold; s.Source == optimizer.SourceModel {
			s.Reasons.Note += "; by what trials report on the way"
		}
	}
	return batch, true
}
