package duration

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// The sweeps over the censored observations: at most so many, until none of them moves by more than settled
// standard deviations of the outcomes. All sites move at once, so that a sweep costs one factorisation, and
// therefore only by a share of the way.
const (
	mostSweeps = 50
	settled    = 1e-3
	stride     = 0.7
)

// condition returns the process given all observations. What is known of a censored one is that its outcome lies
// above y, which is no normal likelihood: expectation propagation puts a normal one in its place, with a mean and
// a variance of its own (Groot and Lucas 2012, Gaussian process regression with censored data using expectation
// propagation). They are such that the posterior has the moments that it would have with the true one.
//
// It fills in the outcomes that are expected of the censored ones.
func (d *data) condition(ctx context.Context, k *kernel.Kernel, h gp.Hyperparameters, scale gp.Scale) (*gp.Model, error) {
	n := len(d.logs)
	sites, y, extra := make([]site, n), make([]float64, n), make([]float64, n)
	bounds := make([]float64, n)
	for i, v := range d.logs {
		bounds[i] = (v - scale.Mean) / scale.SD
		y[i], sites[i] = bounds[i], site{precision: 1e-6 / h.Noise} // it says next to nothing at first
	}
	for sweep := 0; ; sweep++ {
		for i, s := range sites {
			if d.censored[i] {
				y[i], extra[i] = s.shift/s.precision, max(0, 1/s.precision-h.Noise)
			}
		}
		m, err := gp.ConditionEach(k, h, d.x, y, extra)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // Fit does
		}
		residual, variance := m.LeaveOneOut()
		moved := 0.
		for i := range sites {
			if d.censored[i] {
				// Without this observation: the mean, and the variance without noise.
				mean, v := y[i]-residual[i], max(variance[i]-h.Noise-extra[i], 1e-12)
				moved = max(moved, sites[i].move(beyond(bounds[i], mean, v, h.Noise), mean, v))
				d.filled[i] = scale.Mean + scale.SD*meanBeyond(bounds[i], mean, math.Sqrt(v+h.Noise))
			}
		}
		if moved < settled || sweep == mostSweeps {
			return m, nil
		}
	}
}

// site is a normal likelihood in the place of another: its precision, and that times its mean.
type site struct{ precision, shift float64 }

// move moves the site towards what gives the moments, from a normal prior with mean and variance. It returns by how
// much the posterior's mean is from them.
func (s *site) move(want moments, mean, variance float64) float64 {
	precision := 1/want.variance - 1/variance
	shift := want.mean/want.variance - mean/variance
	now := (mean/variance + s.shift) / (1/variance + s.precision)
	// The likelihood is log-concave, so the precision is positive but for rounding.
	s.precision = max((1-stride)*s.precision+stride*precision, 1e-12)
	s.shift = (1-stride)*s.shift + stride*shift
	return math.Abs(want.mean - now)
}

// moments are those of a value.
type moments struct{ mean, variance float64 }

// beyond returns the moments of a value f with a normal prior, given that f plus noise lies above low (Rasmussen
// and Williams 2006, equations 3.82 to 3.87, with the probit turned to it).
func beyond(low, mean, variance, noise float64) moments {
	sd := math.Sqrt(variance + noise)
	z := (mean - low) / sd
	r := hazard(-z)
	return moments{mean + variance*r/sd, variance - variance*variance*r*(z+r)/(variance+noise)}
}

// meanBeyond returns the mean of those values of a normal distribution that are larger than low: mean + sd·φ(a)/(1 − Φ(a)) with
// a = (low − mean)/sd (Johnson, Kotz and Balakrishnan 1994, Continuous univariate distributions 1, section 13.10.1).
func meanBeyond(low, mean, sd float64) float64 { return mean + sd*hazard((low-mean)/sd) }

// hazard returns the density of the standard normal distribution at a, divided by the probability of a larger value.
func hazard(a float64) float64 {
	if a > 30 { // the probability underflows: the first terms of Mill's ratio
		return a + 1/a - 2/(a*a*a)
	}
	return math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) / survival(a)
}

// survival is the probability that a standard normal variable is larger than a.
func survival(a float64) float64 { return math.Erfc(a/math.Sqrt2) / 2 }
