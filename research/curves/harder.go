package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/research/lines"
)

// What makes a task harder for a rule of early stopping.
const (
	// noiseShare is the standard deviation of the noise in each report. It is a share of the range from a guess's loss to the best.
	noiseShare = 0.05
	// An epoch s of T is the epoch T·(s/T)^γ of the recorded training. The logarithm of γ is even from that of
	// earliest to that of latest, whatever the training's parameters are, so that many curves cross late.
	earliest, latest = 0.5, 3.0
)

// harder are the changes of a task, by their names.
var harder = map[string]func(p *pool, rng *rand.Rand){
	"noise": func(p *pool, rng *rand.Rand) {
		for i := range p.trainings {
			t := &p.trainings[i]
			t.losses = make([]float64, len(t.clean))
			for s, loss := range t.clean {
				t.losses[s] = loss + noiseShare*(p.guess-p.best)*rng.NormFloat64()
			}
		}
	},
	"late": func(p *pool, rng *rand.Rand) {
		for i := range p.trainings {
			t := &p.trainings[i]
			pace := earliest * math.Pow(latest/earliest, rng.Float64())
			t.losses = slowed(t.clean, pace)
			t.clean = t.losses
		}
	},
}

// harden changes a task, whose name then says so. An empty change is none.
func harden(p *pool, change string) error {
	if change == "" {
		return nil
	}
	apply, ok := harder[change]
	if !ok {
		return fmt.Errorf("-harder is %q; want noise or late", change)
	}
	p.name += "+" + change
	apply(p, rand.New(rand.NewPCG(lines.Seed(p.name, 0), 1)))
	return nil
}

// slowed returns the losses of a training whose epoch s of T is the recorded epoch T·(s/T)^pace, between
// epochs on a straight line. Before the first epoch it has the first one's loss.
func slowed(losses []float64, pace float64) []float64 {
	list := make([]float64, len(losses))
	for i := range list {
		at := float64(len(losses))*math.Pow(float64(i+1)/float64(len(losses)), pace) - 1
		low := max(0, int(at))
		high := min(low+1, len(losses)-1)
		share := max(0, at-float64(low))
		list[i] = losses[low]
		if share > 0 {
			list[i] += share * (losses[high] - losses[low])
		}
	}
	return list
}
