package library

import (
	"context"
	"iter"
)

// Unusable is a Binding of which every call fails with Err.
type Unusable struct{ Err error }

var _ Binding = Unusable{}

// Ask implements Binding.
func (u Unusable) Ask(context.Context) (*Evaluation, error) { return nil, u.Err }

// Tell implements Binding.
func (u Unusable) Tell(*Evaluation, Measured, error) error { return u.Err }

// Turn implements Binding.
func (u Unusable) Turn(context.Context, *Evaluation, Measured, error) (*Evaluation, error) {
	return nil, u.Err
}

// Report implements Binding.
func (u Unusable) Report(*Evaluation, string, int, float64) error { return u.Err }

// Instruction implements Binding.
func (u Unusable) Instruction(*Evaluation) error { return u.Err }

// Enqueue implements Binding.
func (u Unusable) Enqueue(map[string]any) error { return u.Err }

// Add implements Binding.
func (u Unusable) Add(Measured, map[string]any) error { return u.Err }

// Outcome implements Binding.
func (u Unusable) Outcome() (err error, ended bool) { return u.Err, true }

// Best implements Binding.
func (u Unusable) Best() (Result, error) { return Result{}, u.Err }

// Trials implements Binding.
func (u Unusable) Trials() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) { yield(Result{}, u.Err) }
}

// Curve implements Binding.
func (u Unusable) Curve(int, string) ([]Measurement, error) { return nil, u.Err }

// Front implements Binding.
func (u Unusable) Front() ([]Optimal, error) { return nil, u.Err }

// Recommended implements Binding.
func (u Unusable) Recommended(context.Context) ([]Optimal, error) { return nil, u.Err }

// Close implements Binding.
func (u Unusable) Close() error { return u.Err }
