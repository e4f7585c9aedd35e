package uhe

import (
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// bandit is EXP3 (Auer et al. 2002, figure 1) over two arms: to begin a group of trials
// with a random point, or to choose all its points by the model. Groups are consecutive
// trial numbers, so their results may arrive in any order. The zero bandit has not begun.
type bandit struct {
	// Horizon is the number of groups for which the learning rate is chosen, Groups the
	// number begun since the weights were equal.
	Horizon int `json:"horizon,omitempty"`
	Groups  int `json:"groups,omitempty"`
	// Log is the logarithm of the random arm's weight over that of the other.
	Log float64 `json:"log,omitempty"`
	// Open are the groups whose reward is not known, in order.
	Open []group `json:"open,omitempty"`
}

// group is a group of trials.
type group struct {
	First  int  `json:"first"` // trial
	Random bool `json:"random,omitempty"`
	// P is the probability with which the arm was drawn.
	P float64 `json:"p"`
}

// mostOpen bounds the groups whose reward is awaited. The oldest are forgotten first.
const mostOpen = 500

// shortest is the least horizon.
const shortest = 8

// rate returns EXP3's γ for the horizon: √(K ln K / ((e−1)g)) for K = 2 arms and a total
// reward of at most g. With g pairs in T = 2g trials it is the paper's √(4 ln 2 / ((e−1)T)).
func (b *bandit) rate() float64 {
	return min(1, math.Sqrt(2*math.Ln2/((math.E-1)*float64(b.Horizon))))
}

// chance returns the probability of the random arm.
func (b *bandit) chance() float64 {
	rate := b.rate()
	return (1-rate)/(1+math.Exp(-b.Log)) + rate/2
}

// random reports whether the trial should be a random point. It begins a group of the
// given size unless the trial belongs to the last one. horizon is the number of groups
// that the study has room for; a bandit that has more of them begins again with twice the
// horizon (the doubling trick). always replaces the draw by the random arm.
func (b *bandit) random(trial, size, horizon int, always bool, rng *rand.Rand) (yes bool, chance float64) {
	if n := len(b.Open); n > 0 && trial > b.Open[n-1].First && trial < b.Open[n-1].First+size {
		return false, 0
	}
	switch {
	case b.Horizon == 0:
		*b = bandit{Horizon: max(shortest, horizon)}
	case b.Groups >= b.Horizon:
		*b = bandit{Horizon: 2 * b.Horizon}
	}
	chance = b.chance()
	if always {
		chance = 1
	}
	g := group{First: trial, Random: rng.Float64() < chance, P: chance}
	if !g.Random {
		g.P = 1 - chance
	}
	b.Groups++
	b.Open = append(b.Open, g)
	if len(b.Open) > mostOpen {
		b.Open = b.Open[len(b.Open)-mostOpen:]
	}
	return g.Random, chance
}

// learn updates the weights by the groups that have ended, in the order of their trials.
// The reward of a group is its best value as a share of the range of all values so far:
// 0 for the worst and 1 for the best; 0 without a value.
func (b *bandit) learn(p *optimizer.Problem, size int) {
	cost := make(map[int]float64, len(p.Observations)) // of ended trials, +Inf without a value
	least, most := math.Inf(1), math.Inf(-1)
	for _, o := range p.Observations {
		c := math.Inf(1)
		if o.Outcome == optimizer.OutcomeCompleted {
			c = p.Direction.Cost(o.Values.First())
			least, most = min(least, c), max(most, c)
		}
		cost[o.Trial] = c
	}
	var open []group
	for _, g := range b.Open {
		best, ended := math.Inf(1), true
		for trial := g.First; trial < g.First+size; trial++ {
			c, known := cost[trial]
			best, ended = min(best, c), ended && known
		}
		if !ended {
			open = append(open, g)
			continue
		}
		reward := 0.0
		if !math.IsInf(best, 1) && most > least {
			reward = (most - best) / (most - least)
		}
		if math.IsNaN(reward) || math.IsInf(reward, 0) {
			reward = 0 // the range is beyond a float64
		}
		gain := b.rate() * reward / (2 * g.P)
		if !g.Random {
			gain = -gain
		}
		b.Log += gain
	}
	b.Open = open
}
