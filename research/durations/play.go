package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
	"github.com/fantasia-hpo/fantasia/study"
)

// trial is a training in virtual time.
type trial struct {
	Point study.Point `json:"point"`
	Start float64     `json:"start"`
	End   float64     `json:"end"`
}

// run is a study that was played to its end.
type run struct {
	Table     string `json:"table"`
	Algorithm string `json:"algorithm"`
	Seed      int    `json:"seed"`
	Workers   int    `json:"workers"`
	// Budget is the time in which the study was played; 0 for one of a number of trials.
	Budget float64 `json:"budget,omitempty"`
	// Trials are in the order in which they began.
	Trials []trial `json:"trials"`
}

func (r *run) key() string { return fmt.Sprint(r.Table, " ", r.Algorithm, " ", r.Seed) }

// mostTrials bounds how many trials are begun within a budget of time.
const mostTrials = 512

// game is what a study is played on. Earlier studies are those that an algorithm whose name ends in known or timed is told.
type game struct {
	*tabulated.Table
	seed    int
	earlier []optimizer.Earlier
	python  string
	// near says whether a point is as near the best one as a run shall come; nil for a run to the end of its budget.
	near func(study.Point) bool
}

// known ends the name of an algorithm that is told what earlier studies found, and timed that of one that is also told how long
// their trainings took.
const (
	known = "+earlier"
	timed = "+timed"
)

// peers begins the name of a sampler of Optuna, and script plays it.
const (
	peers  = "optuna-"
	script = "research/durations/peer.py"
)

// playBudget plays a study until half of a number of trials of random search would have ended.
func playBudget(ctx context.Context, g *game, algorithm string, workers, trials int) (*run, error) {
	random := *g
	random.near = nil
	r, err := play(ctx, &random, "random", workers, trials, 0)
	if err != nil {
		return nil, err
	}
	return play(ctx, g, algorithm, workers, trials, r.moment((len(r.Trials)+1)/2))
}

// player returns the optimiser of an algorithm, such as hebo, hebo:cooled with its setting cost, or optuna-tpe. Who calls it MUST
// call end.
func (g *game) player(algorithm string, p *optimizer.Problem) (o optimizer.Optimizer, end func() error, err error) {
	if sampler, found := strings.CutPrefix(algorithm, peers); found {
		peer, err := newOptuna(g.python, script, sampler, p)
		if err != nil {
			return nil, nil, err
		}
		return peer, peer.Close, nil
	}
	name, cost, found := strings.Cut(algorithm, ":")
	var settings map[string]any
	if found {
		settings = map[string]any{"cost": cost}
	}
	o, err = registry.New(name, settings)
	return o, func() error { return nil }, err
}

// ending is a training that runs, with the loss that it will have; NaN if it diverges.
type ending struct {
	optimizer.Pending
	loss float64
}

// play plays a study with an algorithm: whenever a worker is free, it is given another trial, up to a number of trials or, if
// the budget is not 0, of seconds.
func play(ctx context.Context, g *game, algorithm string, workers, trials int, budget float64) (r *run, err error) {
	t, seed := g.Table, g.seed
	r = &run{Table: t.Name, Algorithm: algorithm, Seed: seed, Workers: workers, Budget: budget}
	s := session.Session{Problem: optimizer.Problem{
		Space: t.Space, Direction: study.Minimize, MaxTrials: trials, Parallelism: workers, Seed: lines.Seed(t.Name, seed),
	}}
	name, found := strings.CutSuffix(algorithm, known)
	if found {
		s.Problem.Earlier = valuesOnly(g.earlier)
	} else if name, found = strings.CutSuffix(algorithm, timed); found {
		s.Problem.Earlier = g.earlier
	}
	var end func() error
	if s.Optimizer, end, err = g.player(name, &s.Problem); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	rng := rand.New(rand.NewPCG(lines.Seed(t.Name, seed), 1))
	now := 0.0
	var running session.Agenda[ending]
	most := trials
	if budget > 0 {
		most = mostTrials
	}
	for {
		for len(r.Trials) < most && len(s.Problem.Pending) < workers && (budget == 0 || now < budget) {
			if budget > 0 {
				s.Problem.Time = &optimizer.Time{Budget: budget, Left: budget - now}
			}
			batch, err := s.Ask(ctx, 1)
			if errors.Is(err, optimizer.ErrExhausted) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("ask: %w", err)
			}
			loss, seconds, ok := t.Look(batch[0].Point, rng)
			if !ok {
				loss, seconds = math.NaN(), 1 // a training that diverged
			}
			running.Add(now+seconds, s.Asked(), ending{optimizer.Pending{Trial: s.Asked(), Point: batch[0].Point}, loss})
			r.Trials = append(r.Trials, trial{batch[0].Point, now, now + seconds})
		}
		if running.Len() == 0 {
			return r, nil
		}
		var first ending
		if first, now = running.Next(); g.near != nil && g.near(first.Point) {
			return r, nil
		}
		told := optimizer.Observation{Trial: first.Trial, Point: first.Point, Outcome: optimizer.OutcomeFailed}
		told.Seconds = now - r.Trials[first.Trial-1].Start
		if study.Finite(first.loss) {
			told.Outcome, told.Values = optimizer.OutcomeCompleted, study.Values{first.loss}
		}
		s.Tell(told)
	}
}
