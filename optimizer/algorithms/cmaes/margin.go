package cmaes

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// margin moves the mean and the scale of each coordinate with levels so that the levels
// next to the mean's keep a probability of at least about share: without it the
// distribution settles on a level and never leaves it (Hamano et al. 2022, CMA-ES with
// Margin, arXiv 2205.13482).
func (g *gaussian) margin(columns []optimizer.Column, share float64) {
	for i, c := range columns {
		if c.Levels == 0 {
			continue
		}
		low, high := limits(c, g.Mean[i])
		root := g.Sigma * math.Sqrt(g.variance(i))
		below := cdf((low - g.Mean[i]) / (root * g.Scale[i]))
		above := 1 - cdf((high-g.Mean[i])/(root*g.Scale[i]))
		if max(below, above) > 0.5 { // on the first or the last level
			if min(below, above) < share {
				g.Mean[i] = high + float64(cmp.Compare(g.Mean[i], high))*root*g.Scale[i]*upperQuantile(share)
			}
			continue
		}
		within := 1 - below - above
		if within < unnoticed { // its neighbours have almost half each: there is nothing to correct
			continue
		}
		below, above = max(below, share/2), max(above, share/2)
		excess := (1 - below - above - within) / (below + within + above - 3*share/2)
		below += excess * (below - share/2)
		above += excess * (above - share/2)
		a, b := upperQuantile(clip(below)), upperQuantile(clip(above))
		g.Scale[i] = (high - low) / ((a + b) * root)
		g.Mean[i] = (low*b + high*a) / (a + b)
	}
}

// unnoticed is the probability of the mean's level below which it is left alone. The quantiles
// of its ends would differ by little more than rounding errors, and by their difference the
// scale would be wrong.
const unnoticed = 1e-6

// limits returns the ends of the mean's level; at the first and the last level both are
// its inner end.
func limits(c optimizer.Column, mean float64) (low, high float64) {
	low, high = c.Bin(min(1, max(0, mean)))
	switch {
	case low <= 0:
		return high, high
	case high >= 1:
		return low, low
	}
	return low, high
}

// clip keeps a probability off 0 and ½, where the quantiles are infinite or 0.
func clip(p float64) float64 { return min(max(p, 1e-10), 0.5-1e-10) }

func cdf(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// upperQuantile returns the value that a standard normal variable exceeds with
// probability p.
func upperQuantile(p float64) float64 { return -mathext.NormalQuantile(p) }
