package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/research/peer"
	"github.com/fantasia-hpo/fantasia/study"
)

// outside is another tuner, which peer.py plays in a process of its own. It has the points that
// it was asked for in its memory, so it serves a single game.
type outside struct {
	*peer.Process
	told int // observations
}

// tuner is what peer.py gets as its argument.
type tuner struct {
	Name       string    `json:"name"`
	Seed       uint64    `json:"seed"`
	Lower      []float64 `json:"lower"`
	Upper      []float64 `json:"upper"`
	Objectives int       `json:"objectives"`
	Reference  []float64 `json:"reference"` // nil if it is not told
}

// result is an evaluation as peer.py reads it.
type result struct {
	ID     int          `json:"id"` // from 0 on
	Values study.Values `json:"values"`
}

// newOutside starts a tuner for a game of several objectives.
func newOutside(python, script, name string, g game, p *optimizer.Problem) (*outside, error) {
	t := tuner{Name: name, Seed: p.Seed, Lower: g.lower, Upper: g.upper, Objectives: len(p.Objectives)}
	for _, o := range p.Objectives {
		if o.Reference != nil {
			t.Reference = append(t.Reference, *o.Reference)
		}
	}
	argument, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	process, err := peer.Start(python, script, string(argument))
	return &outside{Process: process}, err
}

// Suggest implements optimizer.Optimizer for requests in the order of a game.
func (t *outside) Suggest(_ context.Context, p *optimizer.Problem, _ optimizer.State, n int, _ *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	tell := []result{}
	for _, o := range p.Observations[t.told:] {
		tell = append(tell, result{ID: o.Trial - 1, Values: o.Values})
	}
	t.told = len(p.Observations)
	var points [][]float64
	if err := t.Ask(map[string]any{"tell": tell, "ask": n}, &points); err != nil {
		return nil, nil, err
	}
	var batch []optimizer.Suggestion
	for _, x := range points {
		point := study.Point{}
		for i, v := range x {
			point[fmt.Sprintf("x%d", i+1)] = v
		}
		batch = append(batch, optimizer.Suggestion{Point: point})
	}
	return batch, nil, nil
}
