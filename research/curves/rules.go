package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
)

// most is more trials than any run has.
const most = 1000

// ruled is a policy of today: an optimiser that is told how trials end, and a rule that stops
// some of them, which knows their curves.
type ruled struct {
	*world
	session  session.Session
	rule     pruner.Pruner // nil if none is stopped
	memory   judge.Memory
	modelled bool // the rule is a model
	// foreseen are where trials that run are expected to end, by number, as the model said last; blind leaves the optimiser
	// without it.
	foreseen map[int]float64
	blind    bool
}

func newRuled(w *world, algorithm string, stopping *study.EarlyStopping, workers int, blind bool) (*ruled, error) {
	r := &ruled{world: w, blind: blind}
	o, err := registry.New(algorithm, nil)
	if err != nil {
		return nil, err
	}
	if stopping != nil {
		r.modelled = stopping.Name == pruner.Model
		if r.rule, err = pruner.NewFor(*stopping, study.Minimize); err != nil {
			return nil, err
		}
	}
	r.session = session.Session{Optimizer: o, Problem: optimizer.Problem{
		Space: w.space, Direction: study.Minimize, MaxTrials: most, Parallelism: workers, Seed: w.seed,
	}}
	return r, nil
}

// next implements policy. A trial goes on, epoch by epoch, unless the rule says otherwise.
func (r *ruled) next(ctx context.Context, done *trial) (*trial, int, error) {
	if done != nil {
		loss := done.losses[done.step-1]
		stop, err := r.stops(ctx, done, loss)
		if err != nil {
			return nil, 0, err
		}
		if !stop && done.step < len(done.losses) {
			return done, done.step + 1, nil
		}
		r.end(done)
	}
	r.foresee()
	suggestions, err := r.session.Ask(ctx, 1)
	if errors.Is(err, optimizer.ErrExhausted) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, fmt.Errorf("ask: %w", err)
	}
	t := r.begin(r.encoding.Encode(suggestions[0].Point))
	if t == nil {
		return nil, 0, nil
	}
	// The optimiser is told where the training is, and not where it wanted one.
	r.session.Problem.Pending[len(r.session.Problem.Pending)-1].Point = t.point
	return t, 1, nil
}

// foresee tells the optimiser what trials have reported and where those that run are expected to end, as the engine does: unless
// trainings have completed that did not end with their best or last report.
func (r *ruled) foresee() {
	if r.blind || r.rule == nil || !r.modelled {
		return
	}
	completed, _, same := r.rule.Ends(0)
	r.session.Problem.Curves, r.session.Problem.Last = nil, 0
	if same || len(completed) == 0 {
		r.session.Problem.Last = r.rule.Length()
		for _, t := range r.trials {
			if len(t.looks) > 0 {
				r.session.Problem.Curves = append(r.session.Problem.Curves, optimizer.Curve{Trial: t.number, Looks: t.looks})
			}
		}
	}
	for i := range r.session.Problem.Pending {
		p := &r.session.Problem.Pending[i]
		p.Likely = nil
		if cost, ok := r.foreseen[p.Trial]; ok && !math.IsInf(cost, 0) && (same || len(completed) == 0) {
			p.Likely = study.Values{cost}
		}
	}
}

// stops reports whether the rule stops a trial that has reported a loss. One that a model judges is judged at once.
func (r *ruled) stops(ctx context.Context, t *trial, loss float64) (bool, error) {
	if r.rule == nil {
		return false, nil
	}
	t.looks = optimizer.Looked(t.looks, int64(t.step), t.least())
	verdict := r.rule.Report(t.number, int64(t.step), loss)
	if !verdict.Ask {
		return verdict.Stop, nil
	}
	// The trial runs, as all others that have not ended.
	a, err := judge.Decide(ctx, &judge.Question{
		Trial: t.number, Problem: &r.session.Problem, Curves: r.rule.Curves(), Last: r.rule.Length(), Direction: study.Minimize,
		Memory: r.memory,
	})
	if err != nil {
		return false, err
	}
	r.memory, t.expected, r.foreseen = a.Memory, a.Cost, map[int]float64{}
	for _, f := range a.Running {
		r.foreseen[f.Trial] = f.Cost
	}
	return a.Stop, nil
}

// end tells the rule and the optimiser how a trial has ended.
func (r *ruled) end(t *trial) {
	t.ended = true
	value, completed := t.least(), t.step == len(t.losses)
	if r.rule != nil {
		r.rule.End(t.number, completed, value)
	}
	o := optimizer.Observation{Trial: t.number, Point: t.point, Outcome: optimizer.OutcomeCompleted}
	if !completed {
		o.Outcome = optimizer.OutcomePruned
	}
	if math.IsInf(value, 1) {
		o.Outcome = optimizer.OutcomeFailed
	} else if r.modelled && !completed {
		// As the engine does: reports are what trainings end with, which shows once one has completed.
		if _, _, same := r.rule.Ends(t.expected); same {
			o.Values = study.Values{t.expected}
		}
	} else {
		o.Values = study.Values{value}
	}
	r.session.Tell(o)
}
