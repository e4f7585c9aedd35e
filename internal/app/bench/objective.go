package bench

import (
	"context"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Objective is the objective of runs. It is immutable and safe for concurrent use: each
// run has its own evaluator.
type Objective struct {
	Name      string
	Space     *space.Space
	Direction study.Direction
	// Minimum is the least noise-free value; nil if unknown.
	Minimum *float64
	// Noise is the standard deviation of the noise added to values.
	Noise float64
	// Failing is the probability that an evaluation fails.
	Failing float64
	// Content is a digest of what is evaluated, if the name does not identify it.
	Content string
	// Noisy means that values of the same point differ, so that a recommendation is
	// worth computing.
	Noisy bool

	open func() (evaluator, error)
}

// evaluator evaluates the points of one run, one at a time.
type evaluator interface {
	// evaluate evaluates a trial. Its error ends the run; a failed evaluation is an
	// outcome.
	evaluate(ctx context.Context, seed uint64, trial int, p study.Point) (outcome, error)
	close(ctx context.Context) error
}

// outcome is the outcome of an evaluation.
type outcome struct {
	kind optimizer.Outcome
	// value is what the optimiser is told, truth the noise-free value if known, else
	// the value.
	value, truth float64
	// seconds is the duration; 0 if not measured.
	seconds float64
	// message explains why there is no value.
	message string
}

// NewFunction returns the objective of a function with normal noise of the given
// standard deviation and the given probability of failure. Its parameters are x1, x2,
// ….
func NewFunction(f testfunc.Function, noise, failing float64) (*Objective, error) {
	parameters := make([]study.Parameter, f.Dim())
	for i := range parameters {
		parameters[i] = study.Parameter{Name: coordinate(i), Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i]}
	}
	space, err := celspace.New(parameters, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the domain of %s: %w", f.Name, err)
	}
	return &Objective{
		Name: f.Name, Space: space, Direction: study.Minimize, Minimum: &f.Minimum, Noise: noise, Noisy: noise > 0, Failing: failing,
		open: func() (evaluator, error) { return &function{of: f, noise: noise, failing: failing}, nil },
	}, nil
}

// coordinate names a function's i-th coordinate, counted from 0.
func coordinate(i int) string { return fmt.Sprintf("x%d", i+1) }

// function evaluates a test function.
type function struct {
	of             testfunc.Function
	noise, failing float64
}

func (f *function) evaluate(_ context.Context, seed uint64, trial int, p study.Point) (outcome, error) {
	x := make([]float64, f.of.Dim())
	for i := range x {
		v, ok := p[coordinate(i)].(float64)
		if !ok {
			return outcome{}, fmt.Errorf("trial %d has no %s", trial, coordinate(i))
		}
		x[i] = v
	}
	if f.of.Feasible != nil && !f.of.Feasible(x) {
		return outcome{kind: optimizer.OutcomeInfeasible, message: "the point is outside of the feasible region"}, nil
	}
	if f.failing > 0 && stream(seed, trial, streamFailure).Float64() < f.failing {
		return outcome{kind: optimizer.OutcomeFailed, message: "the evaluation failed at random"}, nil
	}
	truth := f.of.Value(x)
	value := truth
	if f.noise > 0 {
		value += f.noise * stream(seed, trial, streamNoise).NormFloat64()
	}
	if !study.Finite(value) {
		return outcome{kind: optimizer.OutcomeInfeasible, message: fmt.Sprintf("the value is %v", value)}, nil
	}
	return outcome{kind: optimizer.OutcomeCompleted, value: value, truth: truth}, nil
}

func (f *function) close(context.Context) error { return nil }

// loss returns the value that a run minimises: the truth, minus the minimum if known,
// negated if the objective is maximised.
func (o *Objective) loss(truth float64) float64 {
	if o.Minimum != nil {
		return truth - *o.Minimum
	}
	return o.Direction.Cost(truth)
}
