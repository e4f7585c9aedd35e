package nsga2

import (
	"math"
	"math/rand/v2"
)

// The parameters of the variation: those of HEBO (Cowen-Rivers et al. 2022) and of Deb et
// al. 2002, except for the crossover's distribution index 15.
const (
	crossoverProbability = 0.9 // of a pair of parents
	crossoverIndex       = index(15 + 1)
	mutationIndex        = index(20 + 1)
)

// variation makes children of parents.
type variation struct {
	variables []Variable
	rng       *rand.Rand
	crossover index
	mutation  index
	mutable   float64 // probability that a column mutates
}

// sameParent is the difference of coordinates below which two parents count as equal.
const sameParent = 1e-14

// cross makes two children of two parents. With the crossover probability, each column
// crosses with probability ½ (as in Deb's programs and pymoo) and is otherwise copied.
func (v *variation) cross(a, b, c, d []float64) {
	copy(c, a)
	copy(d, b)
	if v.rng.Float64() >= crossoverProbability {
		return
	}
	for i, variable := range v.variables {
		if v.rng.Uint64()&1 == 0 || math.Abs(a[i]-b[i]) <= sameParent {
			continue
		}
		if !variable.Categorical {
			c[i], d[i] = v.blend(min(a[i], b[i]), max(a[i], b[i]))
		}
		if v.rng.Uint64()&1 == 0 {
			c[i], d[i] = d[i], c[i]
		}
	}
}

// blend is the simulated binary crossover of low < high within [0, 1]: children on
// either side of the middle, at a multiple β of the parents' distance. β has a
// polynomial density, truncated where the child would leave the bounds.
func (v *variation) blend(low, high float64) (below, above float64) {
	u := v.rng.Float64()
	middle, distance := (low+high)/2, high-low
	below = middle - v.contraction(u, 1+2*low/distance)*distance/2
	above = middle + v.contraction(u, 1+2*(1-high)/distance)*distance/2
	return unit(below), unit(above)
}

// contraction returns the u-quantile of β, given its largest value.
func (v *variation) contraction(u, largest float64) float64 {
	alpha := 2 - 1/v.crossover.power(largest)
	if u*alpha <= 1 {
		return v.crossover.root(u * alpha)
	}
	return v.crossover.root(1 / (2 - u*alpha))
}

// mutate changes each column with the probability mutable.
func (v *variation) mutate(x []float64) {
	for i, variable := range v.variables {
		switch {
		case v.rng.Float64() >= v.mutable:
		case variable.Categorical:
			// Choose another level, counting on from this one in a circle.
			level := levelOf(x[i], variable.Levels) + 1 + v.rng.IntN(variable.Levels-1)
			x[i] = unitOfLevel(level%variable.Levels, variable.Levels)
		default:
			x[i] = v.perturb(x[i], variable.Levels)
		}
	}
}

// perturb is the polynomial mutation within [0, 1]; a column with levels moves by at
// least one level.
func (v *variation) perturb(x float64, levels int) float64 {
	u := v.rng.Float64()
	var delta float64
	if u < 0.5 {
		delta = v.mutation.root(2*u+(1-2*u)*v.mutation.power(1-x)) - 1
	} else {
		delta = 1 - v.mutation.root(2*(1-u)+(2*u-1)*v.mutation.power(x))
	}
	if step := 1 / float64(max(levels, 1)); levels > 0 && math.Abs(delta) < step {
		if delta = math.Copysign(step, delta); x+delta < 0 || x+delta > 1 {
			delta = -delta
		}
	}
	return unit(x + delta)
}

// levelOf returns the level of x in [0, 1].
func levelOf(x float64, levels int) int { return min(int(x*float64(levels)), levels-1) }

// unitOfLevel returns the coordinate of a level.
func unitOfLevel(level, levels int) float64 { return (float64(level) + 0.5) / float64(levels) }

// unit returns the nearest number in [0, 1], or ½ for NaN.
func unit(x float64) float64 {
	if math.IsNaN(x) {
		return 0.5
	}
	return min(max(x, 0), 1)
}

// index is a distribution index plus 1: the larger it is, the closer children are to
// their parents. Multiplications and square roots are several times faster than math.Pow.
type index int

// power returns x to the power of the index.
func (n index) power(x float64) float64 {
	product := 1.0
	for k := n; k > 0; k >>= 1 {
		if k&1 == 1 {
			product *= x
		}
		x *= x
	}
	return product
}

// root returns the index-th root of x ≥ 0.
func (n index) root(x float64) float64 {
	if n == 16 {
		return math.Sqrt(math.Sqrt(math.Sqrt(math.Sqrt(x))))
	}
	return math.Pow(x, 1/float64(n))
}
