// Package session keeps what an optimiser must be given at each request: what was asked for and what
// was told. It is for everybody who plays an optimiser without a study's engine, such as
// fantasia bench, fantasia ask-tell and the comparisons in research.
package session

import (
	"context"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Session is an optimiser that is asked for points and told how they ended. Who makes one sets the
// Optimizer, and in Problem everything but First, Observations and Pending, which Ask and
// Tell keep. It is not safe for concurrent use.
type Session struct {
	Optimizer optimizer.Optimizer
	Problem   optimizer.Problem
	State     optimizer.State
	asked     int
}

// Asked returns how many trials there are.
func (s *Session) Asked() int { return s.asked }

// Snapshot returns the problem as it is now; later calls do not change it.
func (s *Session) Snapshot() *optimizer.Problem {
	p := s.Problem
	p.First, p.Observations, p.Pending = s.asked+1, slices.Clip(p.Observations), slices.Clone(p.Pending)
	return &p
}

// Ask requests up to n more points. They are pending from now on, as the trials whose numbers follow
// those before. The error is the optimiser's; with optimizer.ErrExhausted there are
// fewer points than n, and they are pending too.
func (s *Session) Ask(ctx context.Context, n int) ([]optimizer.Suggestion, error) {
	p := s.Snapshot()
	batch, state, err := s.Optimizer.Suggest(ctx, p, s.State, n, optimizer.NewRand(p.Seed, p.First))
	if err == nil {
		s.State = state
	}
	for _, b := range batch {
		s.asked++
		s.Problem.Pending = append(s.Problem.Pending, optimizer.Pending{Trial: s.asked, Point: b.Point})
	}
	return batch, err
}

// Tell adds an observation. Its trial, if it is a pending one, has ended.
func (s *Session) Tell(o optimizer.Observation) {
	s.Problem.Observations = append(s.Problem.Observations, o)
	s.Drop(o.Trial)
}

// Drop ends a pending trial of which nothing is told.
func (s *Session) Drop(trial int) {
	s.Problem.Pending = slices.DeleteFunc(s.Problem.Pending, func(p optimizer.Pending) bool { return p.Trial == trial })
}

// Recommend returns what the optimiser recommends of all that it was told; nil if it recommends nothing.
func (s *Session) Recommend(ctx context.Context) (*optimizer.Recommendation, error) {
	return optimizer.Recommend(ctx, s.Optimizer, s.Snapshot(), s.State)
}
