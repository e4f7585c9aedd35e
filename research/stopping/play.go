package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

const (
	// workers is how many networks are trained at once.
	workers = 8
	// most is how many trials a run has; a run that needs more has not reached its
	// target.
	most = 500
)

// tuner is what plays on a task.
type tuner struct {
	name      string
	algorithm string
	settings  map[string]any // of the algorithm
	stopping  *study.EarlyStopping
	// only is the number of epochs after which only the best trial so far goes on; 0
	// if all do.
	only int
	// promotes is the lowest level of a fidelity, in epochs; 0 if there is none. Trials are
	// promoted then, and none is stopped.
	promotes int
	// told is what the optimiser learns of a stopped trial.
	told partial
}

// partial is a form of telling the optimiser of a trial that was stopped.
type partial string

const (
	dropped      partial = "dropped"      // nothing
	asIs         partial = "as-is"        // its best value so far
	extrapolated partial = "extrapolated" // that plus what completed trials gained after its last step, on average
	stopped      partial = "stopped"      // that it was stopped, with its best value so far: what a study does
	censored     partial = "censored"     // a value that a model of all trials predicts, below its best value so far
)

// result is a line of the results: how a run went until it reached the target.
type result struct {
	Tuner   string  `json:"tuner"`
	Data    string  `json:"data"`
	Seed    int     `json:"seed"`
	Seconds float64 `json:"seconds"` // virtual, until a value within the target was reported
	Reached bool    `json:"reached"`
	Trials  int     `json:"trials"`
	Stopped int     `json:"stopped"`
	Epochs  int     `json:"epochs"` // of all trials
}

// running is a trial in training.
type running struct {
	trial int
	point study.Point
	curve []float64
	pace  float64 // seconds of an epoch
	next  float64 // when its next epoch ends
	step  int
	least float64
	// expected is where a model expects the trial to end; it says so when it is judged.
	expected float64
}

// begin begins to train the network of a point.
func (t *task) begin(p study.Point) *running {
	network := t.network(p)
	return &running{point: p, curve: t.curve(network), pace: t.epoch(network), least: math.Inf(1)}
}

// advance ends an epoch of a network and returns its loss.
func (t *running) advance(r *result, target float64) (loss float64) {
	loss = t.curve[t.step]
	t.step++
	t.next += t.pace
	t.least = min(t.least, loss)
	r.Epochs++
	r.Reached = t.least <= target
	return loss
}

// run is a study in virtual time.
type run struct {
	tuner
	*task
	session   session.Session
	rule      pruner.Pruner
	memory    judge.Memory
	running   session.Agenda[*running] // by when their next epochs end
	completed [][]float64              // the least loss up to each epoch
	best      float64                  // after `only` epochs
	result    result
}

// play runs a tuner on a task until a trial reports the target.
func play(ctx context.Context, u tuner, k *task, seed int) (*result, error) {
	if u.promotes > 0 {
		return playPromoted(ctx, u, k, seed)
	}
	r := &run{tuner: u, task: k, best: math.Inf(1), result: result{Tuner: u.name, Data: k.Data[k.data], Seed: seed}}
	spec := study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}, Parameters: k.parameters()}
	points, err := celspace.Of(&study.Study{Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("make the space: %w", err)
	}
	algorithm, err := registry.New(u.algorithm, u.settings)
	if err != nil {
		return nil, err
	}
	if u.told == censored {
		algorithm = &imputing{Optimizer: algorithm}
	}
	if u.stopping != nil {
		if r.rule, err = pruner.NewFor(*u.stopping, study.Minimize); err != nil {
			return nil, err
		}
	}
	r.session = session.Session{Optimizer: algorithm, Problem: optimizer.Problem{
		Space: points, Direction: study.Minimize, MaxTrials: most, Parallelism: workers, Seed: uint64(seed),
	}}
	for range workers {
		if err := r.start(ctx); err != nil {
			return nil, err
		}
	}
	for r.running.Len() > 0 && !r.result.Reached {
		var first *running
		first, r.result.Seconds = r.running.Next()
		ended, err := r.epoch(ctx, first)
		if err != nil {
			return nil, err
		}
		if ended {
			if err := r.start(ctx); err != nil {
				return nil, err
			}
		}
	}
	return &r.result, nil
}

// start asks for a point and trains its network.
func (r *run) start(ctx context.Context) error {
	if r.result.Trials == most {
		return nil
	}
	suggestions, err := r.session.Ask(ctx, 1)
	if errors.Is(err, optimizer.ErrExhausted) || err == nil && len(suggestions) == 0 {
		return nil
	} else if err != nil {
		return fmt.Errorf("ask %s: %w", r.tuner.algorithm, err)
	}
	t := r.begin(suggestions[0].Point)
	t.trial, t.next = r.session.Asked(), r.result.Seconds+t.pace
	r.running.Add(t.next, t.trial, t)
	r.result.Trials++
	return nil
}

// epoch ends an epoch of a trial and reports whether the trial has ended with it.
func (r *run) epoch(ctx context.Context, t *running) (bool, error) {
	loss := t.advance(&r.result, r.target)
	stop, err := r.stops(ctx, t, loss)
	if err != nil {
		return false, err
	}
	if t.step == r.only {
		stop = t.least > r.best
		r.best = min(r.best, t.least)
	}
	completed := t.step == r.Epochs
	if !stop && !completed {
		r.running.Add(t.next, t.trial, t)
		return false, nil
	}
	r.end(t, completed)
	return true, nil
}

// stops reports whether the rule stops a trial that has reported a loss. If a model is to judge it, it does so at once.
func (r *run) stops(ctx context.Context, t *running, loss float64) (bool, error) {
	if r.rule == nil {
		return false, nil
	}
	verdict := r.rule.Report(t.trial, int64(t.step), loss)
	if !verdict.Ask {
		return verdict.Stop, nil
	}
	a, err := judge.Decide(ctx, &judge.Question{
		Trial: t.trial, Problem: &r.session.Problem, Curves: r.rule.Curves(), Last: r.rule.Length(), Direction: study.Minimize, Memory: r.memory,
	})
	if err != nil {
		return false, err
	}
	r.memory, t.expected = a.Memory, a.Cost
	return a.Stop, nil
}

func (r *run) end(t *running, completed bool) {
	value, outcome := t.least, optimizer.OutcomeCompleted
	if completed {
		r.completed = append(r.completed, least(t.curve))
	} else {
		r.result.Stopped++
	}
	if r.rule != nil {
		r.rule.End(t.trial, completed, value)
	}
	switch {
	case completed:
	case r.told == dropped:
		r.session.Drop(t.trial)
		return
	case r.told == asIs:
	case r.told == extrapolated:
		value += r.gain(t.step)
	default:
		outcome = optimizer.OutcomePruned
	}
	values := study.Values{value}
	if r.stopping != nil && r.stopping.Name == pruner.Model && !completed {
		// As in a study: reports are what trainings end with, which shows once one has completed.
		if _, _, same := r.rule.Ends(t.expected); same {
			values = study.Values{t.expected}
		} else {
			values = nil
		}
	}
	r.session.Tell(optimizer.Observation{Trial: t.trial, Point: t.point, Outcome: outcome, Values: values})
}

// gain returns how much lower the loss of the completed trials became after a step, on
// average.
func (r *run) gain(step int) float64 {
	if len(r.completed) == 0 {
		return 0
	}
	var sum float64
	for _, curve := range r.completed {
		sum += curve[len(curve)-1] - curve[step-1]
	}
	return sum / float64(len(r.completed))
}

// least returns the least loss up to each epoch.
func least(curve []float64) []float64 {
	best := slices.Clone(curve)
	for i := 1; i < len(best); i++ {
		best[i] = min(best[i], best[i-1])
	}
	return best
}
