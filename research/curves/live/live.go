// Package live has small trainings that are run, and not recorded, so that a tuner gets the training that it asks for: among
// recorded ones it gets the nearest, and is the further off the nearer it comes to the best. The data are drawn from a fixed seed.
package live

import (
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/study"
)

// Training is one that has begun. It is not safe for concurrent use.
type Training interface {
	// Epoch trains for one more epoch, and returns the loss on held-out data: NaN once it has diverged.
	Epoch() float64
}

// Task is a program to tune.
type Task struct {
	Parameters []study.Parameter
	Epochs     int
	// Guess is the loss of who has learnt nothing, and Best about the least that hundreds of trainings found.
	Guess, Best float64
	// Pace is how long an epoch takes, in virtual seconds.
	Pace func(p study.Point) float64
	// New begins a training.
	New func(p study.Point) Training
}

// Tasks are the programs, by name.
func Tasks() map[string]Task {
	return map[string]Task{"factors": factors(), "boosting": boosting(), "perceptron": perceptron(), "logistic": logistic()}
}

func float(name string, low, high float64, scale study.Scale) study.Parameter {
	return study.Parameter{Name: name, Type: study.Float, Min: &low, Max: &high, Scale: scale}
}

func whole(name string, low, high float64) study.Parameter {
	return study.Parameter{Name: name, Type: study.Int, Min: &low, Max: &high, Scale: study.Log}
}

func number(p study.Point, name string) float64 {
	if n, ok := p[name].(int64); ok {
		return float64(n)
	}
	v, _ := p[name].(float64)
	return v
}

// data are examples with their targets, those of validation among them.
type data struct {
	x, held       [][]float64
	y, heldTarget []float64
}

// draw draws examples of some features, even in the unit cube, with targets.
func draw(train, held, features int, target func(x []float64, rng *rand.Rand) float64) *data {
	rng := rand.New(rand.NewPCG(58, 1))
	d := &data{}
	for i := range train + held {
		x := make([]float64, features)
		for k := range x {
			x[k] = rng.Float64()
		}
		if y := target(x, rng); i < train {
			d.x, d.y = append(d.x, x), append(d.y, y)
		} else {
			d.held, d.heldTarget = append(d.held, x), append(d.heldTarget, y)
		}
	}
	return d
}

// entropy returns the cross-entropy of a logit with a target of 0 or 1.
func entropy(logit, y float64) float64 {
	return math.Log1p(math.Exp(-math.Abs(logit))) + max(logit, 0) - logit*y
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// orNaN returns a loss, NaN if it says that the training has diverged.
func orNaN(loss float64) float64 {
	if math.IsInf(loss, 0) || loss > 1e6 {
		return math.NaN()
	}
	return loss
}
