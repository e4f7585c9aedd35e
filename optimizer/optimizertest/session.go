// Package optimizertest provides what every optimiser is tested with: a conformance
// suite for the Optimizer contract, and a study that runs in memory.
package optimizertest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Session is a study in memory: it asks an optimiser for points and tells it outcomes
// as the ledger would. It fails its test on any error and on any point that must not be
// suggested.
type Session struct {
	t         testing.TB
	optimizer optimizer.Optimizer
	// Problem is the next request's problem; tests may set its fields before asking.
	Problem optimizer.Problem
	// State is the state that the last request returned.
	State optimizer.State
	// Suggested are all the suggestions so far, in order.
	Suggested []optimizer.Suggestion
}

// NewSession starts a study that minimises over the space.
func NewSession(t testing.TB, o optimizer.Optimizer, space *space.Space, seed uint64) *Session {
	return &Session{t: t, optimizer: o, Problem: optimizer.Problem{
		Space: space, Direction: study.Minimize, MaxTrials: 100, Parallelism: 1, Seed: seed, First: 1,
	}}
}

// Ask requests n points and makes them pending.
func (s *Session) Ask(n int) []optimizer.Suggestion {
	s.t.Helper()
	batch, err := s.TryAsk(context.Background(), n)
	if err != nil {
		s.t.Fatalf("ask for %d at trial %d: %v", n, s.Problem.First, err)
	}
	return batch
}

// TryAsk is Ask, but returns the error. It checks the points as well.
func (s *Session) TryAsk(ctx context.Context, n int) ([]optimizer.Suggestion, error) {
	s.t.Helper()
	p := s.Problem
	batch, state, err := s.optimizer.Suggest(ctx, &p, s.State, n, optimizer.NewRand(p.Seed, p.First))
	if err != nil {
		return batch, err
	}
	if len(state) > optimizer.MaxStateSize {
		s.t.Errorf("a state of %d bytes, at most %d are kept", len(state), optimizer.MaxStateSize)
	}
	s.State = state
	// Earlier requests keep their snapshots unchanged.
	pending := append([]optimizer.Pending{}, s.Problem.Pending...)
	for _, b := range batch {
		s.check(b)
		pending = append(pending, optimizer.Pending{Trial: s.Problem.First, Point: b.Point})
		s.Suggested = append(s.Suggested, b)
		s.Problem.First++
	}
	s.Problem.Pending = pending
	return batch, nil
}

// Place makes a point pending that the optimiser did not suggest.
func (s *Session) Place(p study.Point) {
	s.Problem.Pending = append(slices.Clone(s.Problem.Pending), optimizer.Pending{Trial: s.Problem.First, Point: p})
	s.Problem.First++
}

// check fails the test if a suggestion is not in the space or its reasons cannot be
// encoded as JSON.
func (s *Session) check(b optimizer.Suggestion) {
	s.t.Helper()
	if err := s.Problem.Space.Check(b.Point); err != nil {
		s.t.Errorf("suggested %v: %v", b.Point, err)
	}
	if b.Source == "" {
		s.t.Errorf("suggested %v without a source", b.Point)
	}
	values := []*float64{b.Reasons.Mean, b.Reasons.SD}
	for _, v := range b.Reasons.Acquisition {
		values = append(values, &v)
	}
	for _, v := range values {
		if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			s.t.Errorf("suggested %v for a reason that is not finite: %+v", b.Point, b.Reasons)
		}
	}
}

// Tell ends the pending trial with a value.
func (s *Session) Tell(trial int, value float64) {
	s.t.Helper()
	s.End(trial, optimizer.OutcomeCompleted, value)
}

// TellAll ends the pending trial with a value of each objective.
func (s *Session) TellAll(trial int, values study.Values) {
	s.t.Helper()
	s.end(trial, optimizer.OutcomeCompleted, values)
}

// End ends the pending trial.
func (s *Session) End(trial int, outcome optimizer.Outcome, value float64) {
	s.t.Helper()
	s.end(trial, outcome, study.Values{value})
}

func (s *Session) end(trial int, outcome optimizer.Outcome, values study.Values) {
	s.t.Helper()
	for i, p := range s.Problem.Pending {
		if p.Trial != trial {
			continue
		}
		s.Problem.Pending = append(append([]optimizer.Pending{}, s.Problem.Pending[:i]...), s.Problem.Pending[i+1:]...)
		o := optimizer.Observation{Trial: trial, Point: p.Point, Outcome: outcome, Values: values}
		s.Problem.Observations = append(s.Problem.Observations, o)
		return
	}
	s.t.Fatalf("trial %d is not pending", trial)
}

// Run evaluates points by f until the given number of trials have ended, parallelism at
// once, oldest first.
func (s *Session) Run(trials, parallelism int, f func(study.Point) float64) {
	s.t.Helper()
	s.RunAll(trials, parallelism, func(p study.Point) study.Values { return study.Values{f(p)} })
}

// RunAll is Run with a value for each objective.
func (s *Session) RunAll(trials, parallelism int, f func(study.Point) study.Values) {
	s.t.Helper()
	s.Problem.MaxTrials, s.Problem.Parallelism = trials, parallelism
	for len(s.Problem.Observations) < trials {
		if free := min(parallelism-len(s.Problem.Pending), trials-s.Problem.First+1); free > 0 {
			s.Ask(free)
		}
		oldest := s.Problem.Pending[0]
		s.TellAll(oldest.Trial, f(oldest.Point))
	}
}

// Best returns the lowest value told so far, +Inf if none.
func (s *Session) Best() float64 {
	best := math.Inf(1)
	for _, o := range s.Problem.Observations {
		if o.Outcome == optimizer.OutcomeCompleted {
			best = min(best, o.Values.First())
		}
	}
	return best
}

// Space compiles a space and fails the test on an error.
func Space(t testing.TB, parameters []study.Parameter, constraints []string, initial ...map[string]any) *space.Space {
	t.Helper()
	space, err := celspace.New(parameters, constraints, initial)
	if err != nil {
		t.Fatalf("compile the space: %v", err)
	}
	return space
}

// Cube is the space of d floats x1…xd, each between lo and hi.
func Cube(t testing.TB, d int, lo, hi float64) *space.Space {
	t.Helper()
	parameters := make([]study.Parameter, d)
	for i := range parameters {
		parameters[i] = study.Parameter{Name: fmt.Sprintf("x%d", i+1), Type: study.Float, Min: &lo, Max: &hi}
	}
	return Space(t, parameters, nil)
}
