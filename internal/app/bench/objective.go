package bench

import (
	"context"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/testfunc"
	"github.com/fantasia-hpo/fantasia/study"
)

// Objective is what is optimised. It is immutable and safe for concurrent use:
// each run evaluates through an evaluator of its own.
type Objective struct {
	Name      string
	Space     *study.Space
	Direction study.Direction
	// Minimum is the least noise-free value, nil where it is not known.
	Minimum *float64
	// Noise is the standard deviation of what is added to values.
	Noise float64
	// Failing is the probability that an evaluation fails by chance.
	Failing float64
	// Content is a digest of what is evaluated, where the name does not say.
	Content string
	// Noisy says that values of the same point differ, so that a recommendation
	// is worth its time.
	Noisy bool

	open func() (evaluator, error)
}

// evaluator evaluates the points of one run, one at a time.
type evaluator interface {
	// evaluate evaluates a trial. The error is one that ends the run, not the
	// evaluation's own.
	evaluate(ctx context.Context, seed uint64, trial int, p study.Point) (outcome, error)
	close(ctx context.Context) error
}

// outcome is how an evaluation ended.
type outcome struct {
	kind optimizer.Outcome
	// value is what is told, truth the noise-free value where that is known, else
	// the value.
	value, truth float64
	// seconds is how long it took; 0 where nobody measured.
	seconds float64
	// message says why there is no value.
	message string
}

// NewFunction makes an objective of a function whose values have normal noise of
// a standard deviation added, none for 0, and whose evaluations fail by chance
// with the given probability. Its parameters are x1, x2, ….
func NewFunction(f testfunc.Function, noise, failing float64) (*Objective, error) {
	parameters := make([]study.Parameter, f.Dim())
	for i := range parameters {
		parameters[i] = study.Parameter{Name: coordinate(i), Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i]}
	}
	space, err := study.NewSpace(parameters, nil, nil)
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
		return outcome{kind: optimizer.OutcomeFailed, message: "the evaluation failed by chance"}, nil
	}
	truth := f.of.Value(x)
	value := truth
	if f.noise > 0 {
		value += f.noise * stream(seed, trial, streamNoise).NormFloat64()
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return outcome{kind: optimizer.OutcomeInfeasible, message: fmt.Sprintf("the value is %v", value)}, nil
	}
	return outcome{kind: optimizer.OutcomeCompleted, value: value, truth: truth}, nil
}

func (f *function) close(context.Context) error { return nil }

// loss is what a run wants least of: the truth, less the minimum where that is
// known, negated where the direction is to maximise.
func (o *Objective) loss(truth float64) float64 {
	if o.Minimum != nil {
		return truth - *o.Minimum
	}
	return o.Direction.Cost(truth)
}
