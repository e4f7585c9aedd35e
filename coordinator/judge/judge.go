// Package judge decides with a model of curves whether a trial that runs goes on. It is what the rule
// model of early stopping asks: a decision takes milliseconds, so the leader's loop does not wait for it.
package judge

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// growth of the number of reports is when the hyperparameters are fitted again.
	growth = 1.25
	// begun is how many of the trials that the optimiser began last say what a new one is worth.
	begun = 8
	// A trial goes on while it may well end, by patience standard deviations, where a new one is
	// likely to, by hope.
	patience, hope = 1.5, 0.75
)

// Question asks whether a trial goes on. It is a snapshot that nobody changes.
type Question struct {
	// Trial is the number of the trial, which has a curve.
	Trial int
	// Problem says where all trials are: its observations, and the pending trials, which run or will.
	Problem *optimizer.Problem
	// Curves are what trials have reported, at least one of them a finite cost.
	Curves []pruner.Curve
	// Last is the last step of a trial that runs to its end.
	Last int64
	// Direction is that of the metric: costs are of that which is minimised.
	Direction study.Direction
	// Memory is that of the last answer, or zero.
	Memory Memory
}

// Memory lets the next decision begin where the last one ended. It holds nothing that cannot be
// found again from the curves.
type Memory struct {
	hyperparameters *gp.Hyperparameters
	reports         int // to which they were fitted
}

// Answer is a decision.
type Answer struct {
	// Stop says that the trial does not go on, and Reason why, in words for people.
	Stop   bool
	Reason string
	// Cost is where the trial is expected to end, at most the least that it has reported.
	Cost   float64
	Memory Memory
}

// Decide decides. It is a pure function: the same question has the same answer.
//
// The model predicts where the trial ends, and where a trial would that began at the places of the
// last ones that the optimiser began, given that all that run go on. What the optimiser begins next is
// about as good, whichever optimiser it is, so that the worker is better given to it once the trial has
// little chance to be better. The error is the model's, or ctx's.
func Decide(ctx context.Context, q *Question) (Answer, error) {
	encoding := optimizer.NewEncoding(q.Problem.Space)
	list, at := places(q, encoding)
	if at < 0 { // the trial is no longer in the space, and the model knows nothing of where it is
		return Answer{Memory: q.Memory}, nil
	}
	columns, reports := surrogate.Columns(encoding), 0
	for i := range list {
		reports += len(list[i].Reports)
	}
	warm := q.Memory.hyperparameters
	if warm != nil && len(warm.Kernel) != curves.KernelSize(len(columns)) { // of a space that was edited
		warm, q.Memory.reports = nil, 0
	}
	seed := uint64(q.Trial)<<32 + uint64(reports)
	rng := rand.New(rand.NewPCG(q.Problem.Seed, seed))
	fit := float64(reports) >= growth*float64(q.Memory.reports)
	model, err := curves.New(ctx, columns, list, q.Last, warm, fit, rng)
	if err != nil {
		return Answer{}, fmt.Errorf("judge trial %d: %w", q.Trial, err)
	}
	memory := q.Memory
	if fit {
		memory = Memory{new(model.Hyperparameters()), reports}
	}
	outlook, next := model.Outlook(), make([][]float64, 0, begun)
	for _, c := range list[max(0, len(list)-begun):] {
		next = append(next, c.X)
	}
	own, bar := outlook.Curves([]int{at})[0], math.Inf(1)
	for _, e := range outlook.Fresh(next) {
		bar = min(bar, e.Mean-hope*e.SD)
	}
	reached := list[at].Reports
	answer := Answer{Cost: min(least(reached), model.Cost(own.Mean)), Memory: memory}
	if answer.Stop = own.Mean-patience*own.SD > bar; answer.Stop {
		value := func(z float64) float64 { return q.Direction.Cost(model.Cost(z)) }
		answer.Reason = fmt.Sprintf("at step %d of %d it is expected to end at %.4g, or %.4g if it goes well, and a new trial may end at %.4g",
			reached[len(reached)-1].Step, q.Last, value(own.Mean), value(own.Mean-patience*own.SD), value(bar))
	}
	return answer, nil
}

// least returns the least finite cost; +Inf if there is none.
func least(reports []curves.Report) float64 {
	cost := math.Inf(1)
	for _, r := range reports {
		if study.Finite(r.Cost) {
			cost = min(cost, r.Cost)
		}
	}
	return cost
}
