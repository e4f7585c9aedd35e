package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/research/peer"
	"github.com/fantasia-hpo/fantasia/study"
)

// optuna is a sampler of Optuna, which peer.py plays in a process of its own. It remembers what it was asked, so it serves a
// single run.
type optuna struct {
	*peer.Process
	sent int // observations
}

// newOptuna starts a sampler: tpe or gp. The best point of each earlier study comes first.
func newOptuna(python, script, sampler string, p *optimizer.Problem) (*optuna, error) {
	type parameter struct {
		Name    string `json:"name"`
		Values  []any  `json:"values"`
		Ordered bool   `json:"ordered"`
	}
	setup := struct {
		Sampler    string        `json:"sampler"`
		Seed       uint32        `json:"seed"`
		Parameters []parameter   `json:"parameters"`
		First      []study.Point `json:"first"`
	}{Sampler: sampler, Seed: uint32(p.Seed), First: []study.Point{}}
	for _, one := range p.Space.Parameters() {
		setup.Parameters = append(setup.Parameters, parameter{one.Name, one.Values, one.Type == study.Ordinal})
	}
	for _, e := range p.Earlier {
		best := slices.Index(e.Costs, slices.Min(e.Costs))
		setup.First = append(setup.First, e.Points[best])
	}
	argument, err := json.Marshal(setup)
	if err != nil {
		return nil, err
	}
	process, err := peer.Start(python, script, string(argument))
	return &optuna{Process: process}, err
}

// Suggest implements optimizer.Optimizer for the requests of one run, in their order.
func (o *optuna) Suggest(_ context.Context, p *optimizer.Problem, _ optimizer.State, n int, _ *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	type told struct {
		Trial int      `json:"trial"`
		Loss  *float64 `json:"loss"` // nil of a training that failed
	}
	request := struct {
		Tell []told `json:"tell"`
		Ask  int    `json:"ask"`
	}{Tell: []told{}, Ask: n}
	for _, observation := range p.Observations[o.sent:] {
		t := told{Trial: observation.Trial}
		if observation.Outcome == optimizer.OutcomeCompleted {
			loss := observation.Values.First()
			t.Loss = &loss
		}
		request.Tell = append(request.Tell, t)
	}
	o.sent = len(p.Observations)
	var places [][]int // of the values
	if err := o.Ask(request, &places); err != nil {
		return nil, nil, err
	}
	batch := make([]optimizer.Suggestion, len(places))
	for i, at := range places {
		batch[i].Point = study.Point{}
		for k, one := range p.Space.Parameters() {
			batch[i].Point[one.Name] = one.Values[at[k]]
		}
	}
	return batch, nil, nil
}
