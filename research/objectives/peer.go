package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// peer is another tuner, which peer.py plays in a process of its own. It has the points that
// it was asked for in its memory, so it serves a single game.
type peer struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	told    int // observations
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

// newPeer starts a tuner for a game of several objectives.
func newPeer(python, script, name string, g game, p *optimizer.Problem) (*peer, error) {
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
	process := exec.Command(python, script, string(argument))
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	return &peer{process: process, in: in, out: bufio.NewReader(out)}, nil
}

// Suggest implements optimizer.Optimizer for requests in the order of a game.
func (t *peer) Suggest(_ context.Context, p *optimizer.Problem, _ optimizer.State, n int, _ *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	tell := []result{}
	for _, o := range p.Observations[t.told:] {
		tell = append(tell, result{ID: o.Trial - 1, Values: o.Values})
	}
	t.told = len(p.Observations)
	if err := json.NewEncoder(t.in).Encode(map[string]any{"tell": tell, "ask": n}); err != nil {
		return nil, nil, err
	}
	line, err := t.out.ReadBytes('\n')
	if err != nil {
		return nil, nil, fmt.Errorf("the tuner has ended: %w", err)
	}
	var points [][]float64
	if err := json.Unmarshal(line, &points); err != nil {
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

// close ends the tuner.
func (t *peer) close() error {
	if err := t.in.Close(); err != nil {
		return err
	}
	return t.process.Wait()
}
