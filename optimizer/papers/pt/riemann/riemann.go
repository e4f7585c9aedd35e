// Package riemann holds the predictive distribution of a probabilistic transformer: a
// density that is constant within each of several buckets, with half-normal tails (Müller
// et al. 2022, Transformers Can Do Bayesian Inference). Acquisition functions over it have
// closed forms. Lower outcomes are better.
package riemann

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// MaxBuckets is the largest number of buckets.
const MaxBuckets = 4096

// Buckets divide the outcomes. They are immutable and safe for concurrent use.
type Buckets struct {
	// borders are the inner ones, ascending: the first and the last bucket have no end.
	borders []float64
	// low and high are the standard deviations of the tails, which are one half of a
	// normal distribution around the first and the last border.
	low, high float64
}

// New returns the buckets between the given inner borders, which must ascend, with tails
// of the given standard deviations.
func New(borders []float64, low, high float64) (*Buckets, error) {
	if n := len(borders); n < 2 || n >= MaxBuckets {
		return nil, fmt.Errorf("%d borders between buckets, want 2 to %d", n, MaxBuckets-1)
	}
	for i, b := range borders {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && !(b > borders[i-1]) {
			return nil, fmt.Errorf("border %d between buckets is %v, want finite numbers that ascend", i+1, b)
		}
	}
	if !(low > 0 && high > 0) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return nil, errors.New("standard deviations of the tails must be positive and finite")
	}
	return &Buckets{slices.Clone(borders), low, high}, nil
}

// Len returns the number of buckets.
func (b *Buckets) Len() int { return len(b.borders) + 1 }

// Distribution is a distribution over buckets. It is immutable and safe for concurrent use.
type Distribution struct {
	*Buckets
	p    []float64 // of each bucket
	logP []float64
}

// Of returns the distribution whose buckets have probabilities proportional to the
// exponentials of the logits. It panics unless there is a logit for each bucket.
func (b *Buckets) Of(logits []float64) Distribution {
	if len(logits) != b.Len() {
		panic(fmt.Sprintf("riemann: %d logits of %d buckets", len(logits), b.Len()))
	}
	d := Distribution{b, make([]float64, len(logits)), make([]float64, len(logits))}
	largest, sum := slices.Max(logits), 0.0
	for i, v := range logits {
		d.p[i] = math.Exp(v - largest)
		sum += d.p[i]
	}
	for i, v := range logits {
		d.p[i] /= sum
		d.logP[i] = v - largest - math.Log(sum)
	}
	return d
}

// last returns the number of the last bucket, which is unbounded above.
func (d Distribution) last() int { return len(d.borders) }

// Mean returns the mean.
func (d Distribution) Mean() float64 {
	mean := d.p[0]*(d.borders[0]-d.low*halfMean) + d.p[d.last()]*(d.borders[d.last()-1]+d.high*halfMean)
	for i := 1; i < d.last(); i++ {
		mean += d.p[i] * (d.borders[i-1] + d.borders[i]) / 2
	}
	return mean
}

// halfMean is the mean of |z|, z being standard normal.
var halfMean = math.Sqrt(2 / math.Pi)

// Variance returns the variance, which is positive.
func (d Distribution) Variance() float64 {
	mean := d.Mean()
	square := func(p, center, variance float64) float64 {
		return p * ((center-mean)*(center-mean) + variance)
	}
	tail := 1 - halfMean*halfMean
	sum := square(d.p[0], d.borders[0]-d.low*halfMean, d.low*d.low*tail)
	sum += square(d.p[d.last()], d.borders[d.last()-1]+d.high*halfMean, d.high*d.high*tail)
	for i := 1; i < d.last(); i++ {
		width := d.borders[i] - d.borders[i-1]
		sum += square(d.p[i], (d.borders[i-1]+d.borders[i])/2, width*width/12)
	}
	return sum
}

// bucket returns the number of y's bucket.
func (d Distribution) bucket(y float64) int {
	i, _ := slices.BinarySearch(d.borders, y)
	return i
}

// Ends returns the borders around y's bucket, infinite for the first and the last one.
func (b *Buckets) Ends(y float64) (low, high float64) {
	i, _ := slices.BinarySearch(b.borders, y)
	low, high = math.Inf(-1), math.Inf(1)
	if i > 0 {
		low = b.borders[i-1]
	}
	if i < len(b.borders) {
		high = b.borders[i]
	}
	return low, high
}

// CDF returns the probability of at most y.
func (d Distribution) CDF(y float64) float64 {
	i := d.bucket(y)
	sum := 0.0
	for _, p := range d.p[:i] {
		sum += p
	}
	switch i {
	case 0:
		return d.p[0] * math.Erfc((d.borders[0]-y)/d.low/math.Sqrt2)
	case d.last():
		return sum + d.p[i]*math.Erf((y-d.borders[i-1])/d.high/math.Sqrt2)
	default:
		return sum + d.p[i]*(y-d.borders[i-1])/(d.borders[i]-d.borders[i-1])
	}
}

// Quantile returns the y at which CDF is q, for q between 0 and 1 without the ends.
func (d Distribution) Quantile(q float64) float64 {
	before, i := 0.0, 0
	for i < d.last() && before+d.p[i] < q {
		before += d.p[i]
		i++
	}
	share := 0.0
	if d.p[i] > 0 {
		share = min(1, max(0, (q-before)/d.p[i]))
	}
	switch i {
	case 0:
		return d.borders[0] - d.low*math.Sqrt2*math.Erfcinv(max(share, math.SmallestNonzeroFloat64))
	case d.last():
		return d.borders[i-1] + d.high*math.Sqrt2*math.Erfinv(min(share, 1-1e-16))
	default:
		return d.borders[i-1] + share*(d.borders[i]-d.borders[i-1])
	}
}

// LogEI returns the logarithm of the expected improvement over the target: of the mean of
// max(0, target − y).
func (d Distribution) LogEI(target float64) float64 {
	first := d.borders[0]
	if target <= first {
		// Below its border the tail is twice a normal density.
		return d.logP[0] + math.Ln2 + acquisition.LogEI(first, d.low, target)
	}
	sum := d.p[0] * (target - first + d.low*halfMean)
	for i := 1; i < d.last() && d.borders[i-1] < target; i++ {
		low, high := d.borders[i-1], d.borders[i]
		if target < high {
			sum += d.p[i] * (target - low) * (target - low) / (2 * (high - low))
		} else {
			sum += d.p[i] * (target - (low+high)/2)
		}
	}
	if end := d.borders[d.last()-1]; target > end {
		z := (target - end) / d.high
		sum += d.p[d.last()] * d.high * (z*math.Erf(z/math.Sqrt2) + halfMean*math.Expm1(-z*z/2))
	}
	return math.Log(sum)
}

// LogPI returns the logarithm of the probability of at most the target.
func (d Distribution) LogPI(target float64) float64 {
	if target <= d.borders[0] {
		return d.logP[0] + math.Ln2 + acquisition.LogCDF((target-d.borders[0])/d.low)
	}
	return math.Log(d.CDF(target))
}

// UCB returns the upper confidence bound on the reward −y that a normal distribution
// exceeds by kappa standard deviations: the quantile of as much probability, negative.
func (d Distribution) UCB(kappa float64) float64 {
	return -d.Quantile(math.Erfc(kappa/math.Sqrt2) / 2)
}
