// Package mixture holds the predictive distribution of a probabilistic transformer: a mixture
// of normal distributions. Acquisition functions over it have closed forms. Lower outcomes are
// better.
package mixture

import (
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// MaxComponents is the largest number of components.
const MaxComponents = 256

// Distribution is a mixture. It is immutable and safe for concurrent use.
type Distribution struct {
	logWeight []float64 // of the components, whose weights add up to 1
	mean, sd  []float64
}

// New returns the mixture whose components have weights proportional to the exponentials of the
// logits. It keeps mean and sd; the latter must be positive. It panics unless there are as many of
// each, and at least one.
func New(logits, mean, sd []float64) Distribution {
	if len(logits) == 0 || len(logits) != len(mean) || len(mean) != len(sd) {
		panic(fmt.Sprintf("mixture: %d logits, %d means, %d standard deviations", len(logits), len(mean), len(sd)))
	}
	total := logSumExp(len(logits), func(i int) float64 { return logits[i] })
	d := Distribution{make([]float64, len(logits)), mean, sd}
	for i, v := range logits {
		d.logWeight[i] = v - total
	}
	return d
}

// logSumExp returns the logarithm of the sum of exp(f(i)).
func logSumExp(n int, f func(i int) float64) float64 {
	values, largest := make([]float64, n), math.Inf(-1)
	for i := range values {
		values[i] = f(i)
		largest = max(largest, values[i])
	}
	if math.IsInf(largest, 0) {
		return largest
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Exp(v - largest)
	}
	return largest + math.Log(sum)
}

// Len returns the number of components.
func (d Distribution) Len() int { return len(d.mean) }

// Component returns a component's weight, mean and standard deviation.
func (d Distribution) Component(i int) (weight, mean, sd float64) {
	return math.Exp(d.logWeight[i]), d.mean[i], d.sd[i]
}

// Mean returns the mean.
func (d Distribution) Mean() float64 {
	mean := 0.0
	for i := range d.mean {
		mean += math.Exp(d.logWeight[i]) * d.mean[i]
	}
	return mean
}

// Variance returns the variance, which is positive.
func (d Distribution) Variance() float64 {
	mean, sum := d.Mean(), 0.0
	for i, m := range d.mean {
		sum += math.Exp(d.logWeight[i]) * ((m-mean)*(m-mean) + d.sd[i]*d.sd[i])
	}
	return sum
}

// LogDensity returns the logarithm of the density at y.
func (d Distribution) LogDensity(y float64) float64 {
	return logSumExp(d.Len(), func(i int) float64 {
		z := (y - d.mean[i]) / d.sd[i]
		return d.logWeight[i] - z*z/2 - math.Log(d.sd[i]*math.Sqrt(2*math.Pi))
	})
}

// CDF returns the probability of at most y.
func (d Distribution) CDF(y float64) float64 {
	sum := 0.0
	for i, m := range d.mean {
		sum += math.Exp(d.logWeight[i]) * math.Erfc((m-y)/d.sd[i]/math.Sqrt2) / 2
	}
	return min(sum, 1)
}

// Quantile returns the y at which CDF is q, for q between 0 and 1 without the ends.
func (d Distribution) Quantile(q float64) float64 {
	z := -math.Sqrt2 * math.Erfcinv(2*q)
	low, high := math.Inf(1), math.Inf(-1)
	for i, m := range d.mean { // between the components' quantiles
		low, high = min(low, m+z*d.sd[i]), max(high, m+z*d.sd[i])
	}
	for low < high {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if d.CDF(middle) < q {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// LogExpectedImprovement returns the logarithm of the expected improvement over the target: of the mean of
// max(0, target − y).
func (d Distribution) LogExpectedImprovement(target float64) float64 {
	return logSumExp(d.Len(), func(i int) float64 {
		return d.logWeight[i] + acquisition.LogEI(d.mean[i], d.sd[i], target)
	})
}

// LogProbabilityBelow returns the logarithm of the probability of at most the target.
func (d Distribution) LogProbabilityBelow(target float64) float64 {
	return logSumExp(d.Len(), func(i int) float64 {
		return d.logWeight[i] + acquisition.LogPI(d.mean[i], d.sd[i], target)
	})
}

// UCB returns the upper confidence bound on the reward −y that a normal distribution
// exceeds by kappa standard deviations: the quantile of as much probability, negative.
func (d Distribution) UCB(kappa float64) float64 {
	return -d.Quantile(math.Erfc(kappa/math.Sqrt2) / 2)
}
