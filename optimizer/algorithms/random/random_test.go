package random

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

func TestConformance(t *testing.T) { optimizertest.Run(t, New) }

// Points are uniform on each parameter's scale: over 4000 of them, in ten bins of
// each continuous column, χ² with 9 degrees of freedom is below its 99.99%
// quantile, 33.7.
func TestUniform(t *testing.T) {
	space := optimizertest.Space(t, optimizertest.Mixed(t).Parameters(), nil)
	s := optimizertest.NewSession(t, New(), space, 1)
	const n = 4000
	batch := s.Ask(n)
	for _, name := range []string{"lr", "drop"} {
		var bins [10]int
		for _, b := range batch {
			p, ok := space.Parameter(name)
			if !ok {
				t.Fatalf("no parameter %s", name)
			}
			bins[min(9, int(10*p.ToUnit(b.Point[name])))]++
		}
		var chi2 float64
		for _, count := range bins {
			chi2 += math.Pow(float64(count)-n/10, 2) / (n / 10)
		}
		if chi2 > 33.7 {
			t.Errorf("%s: %v in ten bins, χ² is %.1f", name, bins, chi2)
		}
	}
}
