package diagnose_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
)

func TestRankCorrelationsAgainstSciPy(t *testing.T) {
	for _, c := range readReference(t).Ranks {
		if diff := cmp.Diff(c.Ranks, diagnose.Ranks(c.X)); diff != "" {
			t.Errorf("%s: ranks (-want +got):\n%s", c.Name, diff)
		}
		near(t, c.Name+": Spearman", diagnose.Spearman(c.X, c.Y), c.Spearman, 1e-12)
		near(t, c.Name+": Kendall", diagnose.Kendall(c.X, c.Y), c.Kendall, 1e-12)
	}
}

// Constant samples have no correlation.
func TestRankCorrelationWithoutOrder(t *testing.T) {
	for _, pair := range [][2][]float64{{{}, {}}, {{1}, {2}}, {{1, 1, 1}, {1, 2, 3}}} {
		if rho, tau := diagnose.Spearman(pair[0], pair[1]), diagnose.Kendall(pair[0], pair[1]); !math.IsNaN(rho) || !math.IsNaN(tau) {
			t.Errorf("%v: ρ is %v and τ %v, want NaN", pair, rho, tau)
		}
	}
}
