package diagnose

import (
	"cmp"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
)

// Ranks returns the rank of each value, 1 for the smallest; equal values have
// the mean of their ranks. NaN is smaller than every number.
func Ranks(v []float64) []float64 {
	order := indices.Sorted(len(v), func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	ranks := make([]float64, len(v))
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && v[order[hi]] == v[order[lo]] {
			hi++
		}
		for _, i := range order[lo:hi] {
			ranks[i] = float64(lo+hi+1) / 2
		}
		lo = hi
	}
	return ranks
}

// Spearman returns the rank correlation ρ of two samples, from −1 to 1: the correlation
// of their ranks. It is NaN if one of them does not vary. It panics for samples of
// different lengths.
func Spearman(x, y []float64) float64 {
	sameLength(x, y)
	if len(x) < 2 {
		return math.NaN()
	}
	return stat.Correlation(Ranks(x), Ranks(y), nil)
}

// Kendall returns the rank correlation τ-b of two samples, from −1 to 1 (Kendall 1945):
// the number of pairs that both order alike minus that of pairs that they order
// oppositely, normalised for ties. It is NaN if one of them does not vary. It takes n²
// steps, and panics for samples of different lengths.
func Kendall(x, y []float64) float64 {
	sameLength(x, y)
	var agree, inX, inY float64
	for i := range x {
		for j := range i {
			a, b := cmp.Compare(x[i], x[j]), cmp.Compare(y[i], y[j])
			agree += float64(a * b)
			inX += float64(a * a)
			inY += float64(b * b)
		}
	}
	return agree / (math.Sqrt(inX) * math.Sqrt(inY))
}

func sameLength(x, y []float64) {
	if len(x) != len(y) {
		panic(fmt.Sprintf("diagnose: samples of %d and %d values", len(x), len(y)))
	}
}
