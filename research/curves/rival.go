package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/research/peer"
)

// rivals are the tuners that rival.py plays. A name without a + stops no trial, or is a scheduler that decides by itself which go on.
var rivals = []string{
	"optuna-tpe", "optuna-tpe+hyperband", "optuna-tpe+sha", "optuna-tpe+median",
	"syne-tune-asha", "syne-tune-asha+promotion", "syne-tune-bohb", "syne-tune-bohb+promotion", "syne-tune-mobster",
	"syne-tune-mobster+promotion", "syne-tune-mobster+rows", "syne-tune-hypertune", "syne-tune-hypertune+promotion", "syne-tune-dyhpo",
}

// rival is the policy of another tuner, which rival.py plays in a process of its own. It is asked after each epoch of a trial. A trial
// that it pauses keeps its step.
type rival struct {
	*world
	*peer.Process
}

// about is what rival.py is told first.
type about struct {
	Tuner  string  `json:"tuner"`
	Seed   uint32  `json:"seed"` // below 1<<31, as some want it
	Dim    int     `json:"dim"`
	Epochs int     `json:"epochs"`
	Guess  float64 `json:"guess"`
	// Places are those of all trainings.
	Places [][]float64 `json:"places"`
}

// epoch is what a trial has reported last.
type epoch struct {
	Trial int      `json:"trial"`
	Step  int      `json:"step"`
	Loss  *float64 `json:"loss"`  // nil if it is not finite
	Value *float64 `json:"value"` // the best one so far, nil if there is none
	Last  bool     `json:"last"`
}

// begun says which trial goes on, or where one begins.
type begun struct {
	Trial int       `json:"trial,omitempty"`
	X     []float64 `json:"x,omitempty"`
}

func newRival(w *world, name, python string) (policy, error) {
	if w.places == nil && strings.HasPrefix(name, "syne-tune-") {
		return nil, fmt.Errorf("%s chooses among recorded trainings: leave it out with -live", name)
	}
	p, err := peer.Start(python, "research/curves/rival.py")
	if err != nil {
		return nil, err
	}
	r := &rival{w, p}
	return r, r.introduce(name)
}

func (r *rival) introduce(name string) error {
	return r.Send(about{name, uint32(r.seed >> 33), r.encoding.Dim(), r.epochs, r.guess, r.places})
}

// next implements policy.
func (r *rival) next(_ context.Context, done *trial) (*trial, int, error) {
	var last *epoch
	if done != nil {
		last = &epoch{
			Trial: done.number, Step: done.step, Loss: loop.Finite(done.losses[done.step-1]), Value: loop.Finite(done.least()),
			Last: done.step == len(done.losses),
		}
	}
	if err := r.Send(map[string]*epoch{"done": last}); err != nil {
		return nil, 0, err
	}
	for {
		var a begun
		if err := r.Receive(&a); err != nil {
			return nil, 0, err
		}
		if a.X == nil {
			return r.goesOn(a.Trial)
		}
		if len(a.X) != r.encoding.Dim() {
			return nil, 0, fmt.Errorf("the tuner begins a trial at %v; want %d coordinates", a.X, r.encoding.Dim())
		}
		t := r.begin(a.X)
		if t == nil { // so another one goes on, or none
			if err := r.Send(begun{}); err != nil {
				return nil, 0, err
			}
			continue
		}
		return t, 1, r.Send(begun{t.number, t.x})
	}
}

// goesOn returns the trial of a number, and the step up to which it is trained. It has none for 0.
func (r *rival) goesOn(number int) (*trial, int, error) {
	if number == 0 {
		return nil, 0, nil
	}
	if number < 0 || number > len(r.trials) {
		return nil, 0, fmt.Errorf("the tuner goes on with trial %d of %d", number, len(r.trials))
	}
	t := r.trials[number-1]
	if t.running || t.step == len(t.losses) {
		return nil, 0, fmt.Errorf("the tuner goes on with trial %d, which runs or has ended", number)
	}
	return t, t.step + 1, nil
}
