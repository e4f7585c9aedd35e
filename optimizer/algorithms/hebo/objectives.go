package hebo

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// exactFront is the largest number of objectives whose hypervolume is improved. Beyond,
// the boxes of the open region are too many.
const exactFront = 3

// beyondNadir is how far the reference point lies beyond the worst values on the front, as
// a share of the front's extent, where the study names none. With the usual tenth, searches
// of ZDT1 and DTLZ2 stayed on a part of the front that they had found first; with a whole
// extent they spent their points on its ends.
const beyondNadir = 0.3

// narrowFront is the share of the extent of all means below which a front is narrow in an
// objective. It is often only one end of the whole front then. With a reference beside it,
// searches of ZDT2 never left this end.
const narrowFront = 0.1

// proposeSeveral is Propose for several objectives.
func (o proposer) proposeSeveral(
	ctx context.Context, r *optimizer.Request, memory *memory,
) ([]optimizer.Suggestion, optimizer.State, error) {
	if len(r.Objectives) > exactFront {
		return o.proposeScalars(ctx, r, memory)
	}
	if o.options.Initial == 0 {
		o.options.Initial = max(4, min(2*(r.Encoding.Dim()+1), r.MaxTrials/4))
	}
	problems := make([]*optimizer.Problem, len(r.Objectives))
	data := make([]*surrogate.Data, len(r.Objectives))
	for k := range problems {
		problems[k] = r.Alone(k)
		data[k] = surrogate.Observe(problems[k], r.Encoding, o.options.Surrogate)
	}
	due := loop.Due(r, o.initial(r), data[0].Completed)
	batch, err := memory.Propose(ctx, r, due, func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error) {
		models, err := o.fitSeveral(ctx, r, o.known(r, data), memory)
		if err != nil {
			return batch, err
		}
		limits, err := o.limits(ctx, r, problems[0], data[0], memory, surrogate.EffortFull)
		if err != nil {
			return batch, err
		}
		in := loop.Input{
			Request: r, Data: data[0], Feasibility: o.feasibility(ctx, r, memory), Batch: batch,
			Front: o.front(r, problems, data, models), Limits: limits,
		}
		for _, m := range models {
			in.Models = append(in.Models, bayes.Gaussian(m.GP))
		}
		s := &search{options: o.options, memory: memory}
		s.Loop = loop.New(ctx, in, loop.Options{
			Candidates: o.effort.candidates, PriorWeight: o.options.PriorWeight, Cost: o.cost(ctx, r),
		})
		s.replicas = s.newFrontReplicas(models)
		return s.Fill(ctx, batch, r.N, s.frontStrategies()), nil
	})
	return batch, memory.state(), err
}

// fitSeveral fits a model to the data of each objective. The error means that one of them
// cannot be fitted.
func (o proposer) fitSeveral(
	ctx context.Context, r *optimizer.Request, data []*surrogate.Data, memory *memory,
) ([]*surrogate.Model, error) {
	config := o.options.Surrogate
	// A few steps from the last fit leave more to chance here: an objective that takes a
	// parameter for irrelevant drives all points to the parameter's ends.
	config.Effort = surrogate.EffortFull
	within := reaches(r)
	data = squeezed(within, data)
	models, fitted, err := fitEach(len(data), memory.Several, func(k int, warm *gp.Hyperparameters) (*surrogate.Model, error) {
		end := math.Inf(1)
		if within != nil {
			end = within[k].end()
		}
		return form(ctx, data[k], config, end, warm, r.Rand)
	})
	if err != nil {
		memory.Several = nil
		return nil, err
	}
	if fitted != nil {
		memory.rememberSeveral(fitted)
	}
	return models, nil
}

// fitEach fits n models, from the remembered hyperparameters on if there are
// as many. fitted is nil if one of the fits was cut short: the next fit must not start from it.
// The error means that one of them cannot be fitted.
func fitEach(
	n int, remembered []gp.Hyperparameters, fit func(k int, warm *gp.Hyperparameters) (*surrogate.Model, error),
) (models []*surrogate.Model, fitted []gp.Hyperparameters, err error) {
	complete := true
	for k := range n {
		m, err := fit(k, kept(remembered, k, n))
		if m == nil {
			return nil, nil, err
		}
		complete = complete && err == nil
		models, fitted = append(models, m), append(fitted, m.GP.Hyperparameters())
	}
	if !complete {
		fitted = nil
	}
	return models, fitted, nil
}

// front returns the front of the observations behind the first objective's data, in the units of
// all models' outcomes. The data are those before any outcomes were squeezed.
func (o proposer) front(
	r *optimizer.Request, problems []*optimizer.Problem, data []*surrogate.Data, models []*surrogate.Model,
) *loop.Front {
	given := make([]*float64, len(models))
	for k, objective := range r.Objectives {
		if objective.Reference != nil {
			at := models[k].Data.Standard(*objective.Reference)
			given[k] = &at
		}
	}
	var costs [][]float64
	for _, i := range data[0].Of {
		cost := make([]float64, len(models))
		for k, m := range models {
			cost[k] = math.Inf(1)
			if o := problems[k].Observations[i]; o.Outcome == optimizer.OutcomeCompleted {
				cost[k] = m.Data.Standard(o.Values.First())
			}
		}
		costs = append(costs, cost)
	}
	var noise []float64
	if o.replicates(r) && o.noiseOf(models) == surrogate.Noisy {
		for _, m := range models {
			noise = append(noise, bayes.Gaussian(m.GP).Noise())
		}
	}
	return loop.NewFront(costs,
		func(means [][]float64) []float64 { return restated(means, models, data, given) },
		func(means [][]float64, reference []float64) bayes.Joint {
			return acquisition.EHVI{Hypervolume: acquisition.NewHypervolume(means, reference), Noise: noise}
		})
}

// restated returns the reference point of means, both in the units of the models. What is narrow,
// and what lies a little beyond, is decided in the units of the data, where no distances are
// squeezed: searches of ZDT1 and ZDT2 stayed at one end of the front otherwise.
func restated(means [][]float64, models []*surrogate.Model, data []*surrogate.Data, given []*float64) []float64 {
	plain := make([][]float64, len(means))
	for i, mean := range means {
		for k, m := range models {
			plain[i] = append(plain[i], m.Data.Restate(mean[k], data[k].Plain()))
		}
	}
	at := reference(plain, make([]*float64, len(given)))
	for k, m := range models {
		if at[k] = data[k].Plain().Restate(at[k], m.Data); given[k] != nil {
			at[k] = *given[k]
		}
	}
	return at
}

// reference returns the reference point: what is given, otherwise a little beyond the worst
// values on the front of the means. Of an objective in which the front is narrow, the extent
// is that of all means.
func reference(means [][]float64, given []*float64) []float64 {
	best := indices.Pick(means, pareto.Front(means))
	at := make([]float64, len(given))
	for k := range at {
		low, high := extent(best, k)
		width := high - low
		if least, most := extent(means, k); width < narrowFront*(most-least) {
			width = most - least
		}
		if at[k] = high + beyondNadir*width; width == 0 {
			at[k] = high + beyondNadir // outcomes are standardised
		}
		if given[k] != nil {
			at[k] = *given[k]
		}
	}
	return at
}

// extent returns the lowest and the highest value of an objective.
func extent(means [][]float64, objective int) (low, high float64) {
	by := func(a, b []float64) int { return cmp.Compare(a[objective], b[objective]) }
	return slices.MinFunc(means, by)[objective], slices.MaxFunc(means, by)[objective]
}
