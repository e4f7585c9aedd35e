package transform_test

import (
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"
)

func TestMomentsOfStandardisedOutcomesAreExact(t *testing.T) {
	y := []float64{1, 2, 3, 4, 10}
	m, s := transform.Standard(y).Moments(0.3, 0.2)
	const mean, sd = 4, 3.5355339059327378 // √(50/4)
	if math.Abs(m-(mean+0.3*sd)) > 1e-12 || math.Abs(s-0.2*sd) > 1e-12 {
		t.Errorf("%v and %v, want %v and %v", m, s, mean+0.3*sd, 0.2*sd)
	}
}

// exp of a normal variable has mean exp(μ + σ²/2) and variance
// (exp σ² − 1)·exp(2μ + σ²).
func TestMomentsOfLognormalOutcomes(t *testing.T) {
	y := make([]float64, 41) // symmetric logarithms: λ = 0
	for i := range y {
		y[i] = math.Exp(1 + float64(i-20)/10)
	}
	fitted := transform.Fit(y)
	if fitted.Kind() != transform.KindBoxCox || math.Abs(fitted.Lambda()) > 1e-6 {
		t.Fatalf("%s with λ = %g, want Box-Cox with 0", fitted.Kind(), fitted.Lambda())
	}
	z := make([]float64, len(y))
	fitted.Apply(z, y)
	unit := (z[40] - z[0]) / 4 // of z in a logarithm
	for _, test := range []struct{ mu, sigma float64 }{{1, 0.1}, {0, 0.3}, {2, 0.25}} {
		m, s := fitted.Moments((test.mu-1)*unit, test.sigma*unit)
		variance := test.sigma * test.sigma
		mean := math.Exp(test.mu + variance/2)
		sd := mean * math.Sqrt(math.Expm1(variance))
		if math.Abs(m-mean) > 1e-4*mean || math.Abs(s-sd) > 1e-3*sd {
			t.Errorf("exp of N(%g, %g²): mean %g and sd %g, want %g and %g", test.mu, test.sigma, m, s, mean, sd)
		}
	}
}

func TestMomentsGrowWithTheMeanAndStayPlausible(t *testing.T) {
	samples := map[string][]float64{
		"heavy":   sample(40, 20, func(z float64) float64 { return 1 / (3.5 - min(z, 3.4)) }),
		"outlier": append(sample(30, 21, identity), 1e12),
		"sinh":    sample(40, 22, math.Sinh),
	}
	for name, y := range samples {
		fitted := transform.Fit(y)
		before := math.Inf(-1)
		for mean := -6.0; mean <= 6; mean += 0.1 {
			m, _ := fitted.Moments(mean, 0.7)
			if m < before-1e-9*math.Abs(before) {
				t.Errorf("%s: the mean falls from %g to %g at %g", name, before, m, mean)
			}
			before = m
		}
		// At a typical place, the moments have the size of typical outcomes.
		inside := slices.Sorted(slices.Values(y))[:30]
		extent := inside[29] - inside[0]
		if m, s := fitted.Moments(0, 1); !(m > inside[0]-extent && m < inside[29]+extent && s < 3*extent) {
			t.Errorf("%s (%s, λ = %g): mean %g, sd %g of outcomes in [%g, %g]", name, fitted.Kind(), fitted.Lambda(), m, s, inside[0], inside[29])
		}
	}
}
