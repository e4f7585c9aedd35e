package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
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

// playBudget plays a study until half of a number of trials of random search would have ended.
func playBudget(ctx context.Context, t *table, algorithm string, seed, workers, trials int) (*run, error) {
	r, err := play(ctx, t, "random", seed, workers, trials, 0)
	if err != nil {
		return nil, err
	}
	return play(ctx, t, algorithm, seed, workers, trials, r.moment((len(r.Trials)+1)/2))
}

// play plays a study with an algorithm, such as hebo or hebo:cooled with its setting cost: whenever a worker is
// free, it is given another trial, up to a number of trials or, if the budget is not 0, of seconds.
func play(ctx context.Context, t *table, algorithm string, seed, workers, trials int, budget float64) (*run, error) {
	name, cost, found := strings.Cut(algorithm, ":")
	var settings map[string]any
	if found {
		settings = map[string]any{"cost": cost}
	}
	o, err := registry.New(name, settings)
	if err != nil {
		return nil, err
	}
	r := &run{Table: t.name, Algorithm: algorithm, Seed: seed, Workers: workers, Budget: budget}
	s := session.Session{Optimizer: o, Problem: optimizer.Problem{
		Space: t.space, Direction: study.Minimize, MaxTrials: trials, Parallelism: workers, Seed: seedOf(t.name, seed),
	}}
	rng := rand.New(rand.NewPCG(seedOf(t.name, seed), 1))
	losses, now := map[int]float64{}, 0.0
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
			loss, seconds, ok := t.look(batch[0].Point, rng)
			if !ok {
				loss, seconds = math.NaN(), 1 // a training that diverged
			}
			losses[s.Asked()] = loss
			r.Trials = append(r.Trials, trial{batch[0].Point, now, now + seconds})
		}
		if len(s.Problem.Pending) == 0 {
			return r, nil
		}
		first := slices.MinFunc(s.Problem.Pending, func(a, b optimizer.Pending) int {
			return cmp.Compare(r.Trials[a.Trial-1].End, r.Trials[b.Trial-1].End)
		})
		now = r.Trials[first.Trial-1].End
		told := optimizer.Observation{Trial: first.Trial, Point: first.Point, Outcome: optimizer.OutcomeFailed}
		told.Seconds = now - r.Trials[first.Trial-1].Start
		if loss := losses[first.Trial]; study.Finite(loss) {
			told.Outcome, told.Values = optimizer.OutcomeCompleted, study.Values{loss}
		}
		s.Tell(told)
	}
}

// seedOf returns the seed of a run: two tables never share one.
func seedOf(name string, seed int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", name, seed)
	return h.Sum64()
}
