package cmaes

import (
	"math"
	"math/rand/v2"
	"slices"
)

// choices is the search distribution over the categorical coordinates: independent, with
// a probability for each choice. It follows the natural gradient, with a learning rate
// that adapts to how reliable the gradient is (ASNG, Akimoto et al. 2019), and keeps a
// margin for each choice, as CatCMA with Margin does (Hamano et al. 2025, arXiv
// 2504.07884). Fields are exported for the state.
type choices struct {
	Shares []floats // of each coordinate's choices; each list adds up to 1
	Least  floats   // the margin: the least share of each coordinate's choices
	Path   floats   // the smoothed gradient, and
	Gamma  float64  // its expected squared length without a signal
	Rate   float64  // the inverse of the learning rate
	Step   float64  // the length of the next step: as in cmaes, from Rate one update ago
}

// newChoices starts from the shares. discrete counts the coordinates that are
// categorical or have levels.
func newChoices(shares [][]float64, discrete int) *choices {
	c := &choices{Rate: 1, Step: 1}
	free := 0
	for _, list := range shares {
		c.Shares = append(c.Shares, slices.Clone(list))
		c.Least = append(c.Least, (1-math.Pow(0.73, 1/float64(discrete)))/float64(len(list)-1))
		free += len(list) - 1
	}
	c.Path = make([]float64, free)
	return c
}

// valid reports whether the distribution has those numbers of choices, and finite
// numbers.
func (c *choices) valid(levels []int) bool {
	if len(c.Shares) != len(levels) || len(c.Least) != len(levels) {
		return false
	}
	free := 0
	for i, list := range c.Shares {
		if len(list) != levels[i] || slices.ContainsFunc(list, func(v float64) bool { return !(v > 0 && v <= 1) }) {
			return false
		}
		free += len(list) - 1
	}
	if slices.ContainsFunc(c.Path, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return false
	}
	return len(c.Path) == free && c.Rate > 0 && !math.IsInf(c.Rate, 1) && c.Step > 0 && !math.IsInf(c.Step, 1) && !math.IsNaN(c.Gamma)
}

// sample returns a draw: the number of a choice for each coordinate.
func (c *choices) sample(rng *rand.Rand) []int {
	drawn := make([]int, len(c.Shares))
	for i, list := range c.Shares {
		u, below := rng.Float64(), 0.0
		for k, p := range list {
			drawn[i] = k
			if below += p; u < below {
				break
			}
		}
	}
	return drawn
}

// update moves the shares towards the choices of the parents, the best first; -1 is a
// coordinate that is inactive.
func (c *choices) update(s strategy, parents [][]int) {
	gradient := make([][]float64, len(c.Shares))
	for i, list := range c.Shares {
		gradient[i] = make([]float64, len(list))
		for k, chosen := range parents {
			if chosen[i] < 0 {
				continue
			}
			for j, p := range list {
				gradient[i][j] -= s.weights[k] * p
			}
			gradient[i][chosen[i]] += s.weights[k]
		}
	}
	natural := make([]float64, 0, len(c.Path))
	for i, list := range c.Shares {
		last := len(list) - 1
		var sum float64
		for _, g := range gradient[i][:last] {
			sum += g
		}
		for j, g := range gradient[i][:last] {
			natural = append(natural, g/math.Sqrt(list[j])+math.Sqrt(list[j])*sum/(list[last]+math.Sqrt(list[last])))
		}
	}
	length := norm(natural)
	if length == 0 {
		return
	}
	rate := c.Step / (length + 1e-8)
	for i, list := range c.Shares {
		for j := range list {
			list[j] += rate * gradient[i][j]
		}
	}
	c.Step = 1 / c.Rate
	beta := c.Step / math.Sqrt(float64(len(c.Path)))
	var squares float64
	for i, v := range natural {
		c.Path[i] = (1-beta)*c.Path[i] + math.Sqrt(beta*(2-beta))*v/length
		squares += c.Path[i] * c.Path[i]
	}
	c.Gamma = (1-beta)*(1-beta)*c.Gamma + beta*(2-beta)
	c.Rate *= math.Exp(beta * (c.Gamma - squares/signal))
	c.keepMargins()
}

// signal is the ratio of the path's squared length to that of a random walk at which
// the learning rate stays as it is.
const signal = 1.5

func (c *choices) keepMargins() {
	for i, list := range c.Shares {
		var sum float64
		for j, p := range list {
			list[j] = max(p, c.Least[i])
			sum += list[j]
		}
		spare := sum - c.Least[i]*float64(len(list))
		for j, p := range list {
			if spare > 0 {
				list[j] -= (sum - 1) * (p - c.Least[i]) / spare
			}
		}
		sum = 0
		for _, p := range list {
			sum += p
		}
		for j := range list {
			list[j] /= sum
		}
	}
}
