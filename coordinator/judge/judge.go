// Package judge decides with a model of curves whether a trial that runs goes on. It is what the rule
// model of early stopping asks: a decision takes milliseconds, so the leader's loop does not wait for it.
package judge

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
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
	// Expected is what a trial that does not go on was expected to reach; nil for one that goes on.
	Expected *record.Expected
	// Cost is where the trial is expected to end, at most the least that it has reported.
	Cost float64
	// Running says the same of all pending trials that have reported anything, the one in question among them, by number.
	Running []Foreseen
	Memory  Memory
}

// Foreseen is where a trial is expected to end: at most the least that it has reported.
type Foreseen struct {
	Trial int
	Cost  float64
}

// Decide decides. It is a pure function: the same question has the same answer.
//
// The model predicts where the trial ends, and where a trial would that began at the places of the
// last ones that the optimiser began, given that all that run go on. What the optimiser begins next is
// about as good, whichever optimiser it is, so that the worker is better given to it once the trial has
// little chance to be better. The error is the model's, or ctx's.
func Decide(ctx context.Context, q *Question) (Answer, error) {
	v, err := newView(ctx, q)
	if err != nil || v.at < 0 { // the trial is no longer in the space, and the model knows nothing of where it is
		return Answer{Memory: v.memory}, err
	}
	own, reached := v.outlook.Curves([]int{v.at})[0], v.list[v.at].Reports
	answer := Answer{Cost: v.cost(v.at, own.Mean), Running: v.running(), Memory: v.memory}
	if answer.Stop = own.Mean-patience*own.SD > v.bar; answer.Stop {
		value := func(z float64) float64 { return q.Direction.Cost(v.model.Cost(z)) }
		answer.Reason = fmt.Sprintf("at step %d of %d it is expected to end at %.4g, or %.4g if it goes well, and a new trial may end at %.4g",
			reached[len(reached)-1].Step, q.Last, value(own.Mean), value(own.Mean-patience*own.SD), value(v.bar))
		answer.Expected = v.expected(q)
	}
	return answer, nil
}

// view is what a model sees of a question's trials.
type view struct {
	numbers []int // of the trials, and list their curves in the same order
	list    []curves.Curve
	at      int // the place of the question's trial; -1 if it is not among them
	model   *curves.Model
	outlook *curves.Outlook
	// bar is what a new trial is likely to reach, as the model sees costs.
	bar    float64
	memory Memory
}

// newView fits the model. It does not, and has no model, if the question's trial is not among those that the model knows.
func newView(ctx context.Context, q *Question) (*view, error) {
	encoding := optimizer.NewEncoding(q.Problem.Space)
	v := &view{bar: math.Inf(1), memory: q.Memory}
	if v.numbers, v.list, v.at = places(q, encoding); v.at < 0 {
		return v, nil
	}
	columns, reports := surrogate.Columns(encoding), 0
	for i := range v.list {
		reports += len(v.list[i].Reports)
	}
	warm := q.Memory.hyperparameters
	if warm != nil && len(warm.Kernel) != curves.KernelSize(len(columns)) { // of a space that was edited
		warm, v.memory.reports = nil, 0
	}
	seed := uint64(q.Trial)<<32 + uint64(reports)
	rng := rand.New(rand.NewPCG(q.Problem.Seed, seed))
	fit := curves.Due(reports, v.memory.reports)
	var err error
	if v.model, err = curves.New(ctx, columns, v.list, q.Last, warm, fit, rng); err != nil {
		return v, fmt.Errorf("judge trial %d: %w", q.Trial, err)
	}
	if fit {
		v.memory = Memory{new(v.model.Hyperparameters()), reports}
	}
	v.outlook = v.model.Outlook()
	next := make([][]float64, 0, begun)
	for _, c := range v.list[max(0, len(v.list)-begun):] {
		next = append(next, c.X)
	}
	for _, e := range v.outlook.Fresh(next) {
		v.bar = min(v.bar, e.Mean-hope*e.SD)
	}
	return v, nil
}

// running returns where the trials that have not ended are expected to, those that have reported anything.
func (v *view) running() (list []Foreseen) {
	var open []int
	for i := range v.list {
		if (v.list[i].Runs || i == v.at) && len(v.list[i].Reports) > 0 {
			open = append(open, i)
		}
	}
	for k, e := range v.outlook.Curves(open) {
		list = append(list, Foreseen{v.numbers[open[k]], v.cost(open[k], e.Mean)})
	}
	return list
}

// cost returns the cost that the model sees as z, at which the trial of a curve ends: at most the least that it has reported.
func (v *view) cost(curve int, z float64) float64 {
	return min(curves.Least(v.list[curve].Reports), v.model.Cost(z))
}

// End is where a model expects a trial to end, in costs. None is worse than the least that the trial has reported.
type End struct {
	Trial int
	// Cost is the expected one, and Unlucky one that is worse by a standard deviation. It is between Low and High with
	// a probability of 90%.
	Cost, Unlucky, Low, High float64
	// Margin is by how many standard deviations the trial is expected to end worse than a new one is likely to:
	// Decide stops the trial if it is larger than Patience.
	Margin float64
}

// Patience is the margin with which a trial goes on.
const Patience = patience

// Ends returns where the trials of a question are expected to end that have reported anything, by number, and what
// lets the next call begin where this one ended. There are none if the question's trial is not among them.
func Ends(ctx context.Context, q *Question) ([]End, Memory, error) {
	v, err := newView(ctx, q)
	if err != nil || v.at < 0 {
		return nil, v.memory, err
	}
	var places []int
	for i := range v.list {
		if len(v.list[i].Reports) > 0 {
			places = append(places, i)
		}
	}
	ends := make([]End, len(places))
	for k, e := range v.outlook.Curves(places) {
		cost := func(z float64) float64 { return v.cost(places[k], z) }
		ends[k] = End{v.numbers[places[k]], cost(e.Mean), cost(e.Mean + e.SD), cost(e.Mean - band*e.SD), cost(e.Mean + band*e.SD),
			(e.Mean - v.bar) / e.SD}
	}
	return ends, v.memory, nil
}

const (
	// band is how many standard deviations on each side have a probability of 90%.
	band = 1.6449
	// mostSteps bounds the steps of an expectation, which is kept in the trial's record, and digits those of its values.
	mostSteps, digits = 5, 6
)

// expected returns what the trial is expected to reach at some of its further steps: at least what it has reached. It
// is nil if its numbers are not finite.
func (v *view) expected(q *Question) *record.Expected {
	value := func(cost float64) float64 {
		text := strconv.FormatFloat(q.Direction.Cost(cost), 'g', digits, 64)
		short, _ := strconv.ParseFloat(text, 64) // it was written a moment ago
		return short
	}
	reached := v.list[v.at].Reports
	now, best, level := reached[len(reached)-1].Step, curves.Least(reached), v.model.Cost(v.bar)
	if !study.Finite(best, level) {
		return nil
	}
	all := slices.DeleteFunc(curves.Grid(q.Last), func(step int64) bool { return step <= now })
	e := &record.Expected{Level: value(level)}
	for i, n := 0, min(len(all), mostSteps); i < n; i++ { // an even share of them, up to the last one
		e.Steps = append(e.Steps, all[(i+1)*len(all)/n-1])
	}
	for _, x := range v.outlook.Path(v.at, e.Steps) {
		ends := func(z float64) float64 { return value(v.cost(v.at, z)) }
		low, high := ends(x.Mean-band*x.SD), ends(x.Mean+band*x.SD)
		e.Values = append(e.Values, ends(x.Mean))
		e.Low, e.High = append(e.Low, min(low, high)), append(e.High, max(low, high))
	}
	return e
}
