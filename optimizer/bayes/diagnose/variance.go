package diagnose

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
)

// ErrGroups is the error for groups that cannot be tested: there are fewer than two,
// one of them has fewer than two values, a value is not finite, or the compared values
// do not vary.
var ErrGroups = errors.New("the groups allow no test of their variances")

// Test is the outcome of a test of the hypothesis that all groups have the same
// variance.
type Test struct {
	Statistic float64 `json:"statistic"`
	// P is the probability of a statistic at least as large if the hypothesis holds.
	P float64 `json:"p"`
}

// Levene tests whether the groups have the same variance, in the form of Brown and
// Forsythe (1974), which keeps its level for skewed and heavy-tailed values. With Z the
// distances of the values from their group's median, N values and k groups of sizes nᵢ,
// the statistic is
//
//	W = (N − k)/(k − 1) · Σᵢ nᵢ(Z̄ᵢ − Z̄)² / Σᵢⱼ(Zᵢⱼ − Z̄ᵢ)²
//
// and P its tail in the F distribution with k − 1 and N − k degrees of freedom.
// The error wraps ErrGroups.
func Levene(groups [][]float64) (Test, error) {
	n, err := count(groups)
	if err != nil {
		return Test{}, err
	}
	var grand, between, within float64
	distances := make([][]float64, len(groups))
	means := make([]float64, len(groups))
	for i, group := range groups {
		distances[i] = awayFrom(group, median(group))
		means[i] = stat.Mean(distances[i], nil)
		grand += means[i] * float64(len(group)) / float64(n)
	}
	for i, group := range distances {
		between += float64(len(group)) * (means[i] - grand) * (means[i] - grand)
		for _, z := range group {
			within += (z - means[i]) * (z - means[i])
		}
	}
	if !(within > 0) || math.IsInf(within, 0) {
		return Test{}, fmt.Errorf("%w: the values are equally far from the centres of their groups", ErrGroups)
	}
	d1, d2 := float64(len(groups)-1), float64(n-len(groups))
	w := d2 / d1 * (between / within)
	// The tail is computed directly, as 1 minus the distribution function would lose
	// digits.
	return Test{Statistic: w, P: mathext.RegIncBeta(d2/2, d1/2, d2/(d2+d1*w))}, nil
}

// FlignerKilleen tests whether the groups have the same variance, by the ranks
// of the values' distances from their group's median, which outliers hardly
// move (Fligner and Killeen 1976, in the form of Conover, Johnson and Johnson
// 1981). With the scores a = Φ⁻¹(½ + rank/(2(N+1))) of all N distances, tied ones
// at the mean of their ranks, Āᵢ their mean in group i, ā that of all and s² their
// variance, the statistic is
//
//	χ² = Σᵢ nᵢ(Āᵢ − ā)² / s²
//
// and P its tail in the χ² distribution with one degree of freedom fewer than
// there are groups. The error wraps ErrGroups.
func FlignerKilleen(groups [][]float64) (Test, error) {
	n, err := count(groups)
	if err != nil {
		return Test{}, err
	}
	distances := make([]float64, 0, n)
	for _, group := range groups {
		distances = append(distances, awayFrom(group, median(group))...)
	}
	scores := Ranks(distances)
	for i, rank := range scores {
		scores[i] = mathext.NormalQuantile(0.5 + rank/(2*float64(n+1)))
	}
	mean, variance := stat.MeanVariance(scores, nil)
	if !(variance > 0) {
		return Test{}, fmt.Errorf("%w: the values are equally far from the centres of their groups", ErrGroups)
	}
	var sum float64
	rest := scores
	for _, group := range groups {
		difference := stat.Mean(rest[:len(group)], nil) - mean
		sum += float64(len(group)) * difference * difference
		rest = rest[len(group):]
	}
	chi := sum / variance
	return Test{Statistic: chi, P: mathext.GammaIncRegComp(float64(len(groups)-1)/2, chi/2)}, nil
}

// count returns the total number of values, and checks the groups.
func count(groups [][]float64) (n int, err error) {
	if len(groups) < 2 {
		return 0, fmt.Errorf("%w: %d of them, want 2 or more", ErrGroups, len(groups))
	}
	for i, group := range groups {
		if len(group) < 2 {
			return 0, fmt.Errorf("%w: group %d has %d values, want 2 or more", ErrGroups, i, len(group))
		}
		for _, v := range group {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, fmt.Errorf("%w: group %d holds %v", ErrGroups, i, v)
			}
		}
		n += len(group)
	}
	return n, nil
}

// median returns the middle value, or the mean of the two middle values.
func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

// awayFrom returns the absolute distances of values from a centre.
func awayFrom(v []float64, center float64) []float64 {
	d := make([]float64, len(v))
	for i, x := range v {
		d[i] = math.Abs(x - center)
	}
	return d
}
