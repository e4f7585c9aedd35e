package pruner

import (
	"cmp"
	"math"
	"slices"
)

// SignedRank returns the probability, if the differences were symmetric about 0, of a
// sum of the ranks of positive ones at least as large as theirs: the one-sided Wilcoxon
// signed-rank test. Half of the ranks of zeros count as positive. Like SciPy's, it is
// exact for up to 50 differences, or up to 13 if there are ties or zeros, and else
// takes the normal approximation.
func SignedRank(differences []float64) float64 {
	d := slices.Clone(differences)
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	n := len(d)
	doubled := make([]int, n) // twice the ranks, which are whole or half
	var positive, zero, tied int
	var correction float64
	for i := 0; i < n; {
		j := i + 1
		for j < n && math.Abs(d[j]) == math.Abs(d[i]) {
			j++
		}
		if same := float64(j - i); same > 1 {
			tied++
			correction += same*same*same - same
		}
		for k := i; k < j; k++ {
			doubled[k] = i + j + 1
			switch {
			case d[k] > 0:
				positive += doubled[k]
			case d[k] == 0:
				zero += doubled[k]
			}
		}
		i = j
	}
	if plain := tied == 0 && zero == 0; plain && n <= 50 || n <= 13 {
		return exact(d, doubled, positive)
	}
	sum, count := (float64(positive)+float64(zero)/2)/2, float64(n)
	deviation := math.Sqrt((count*(count+1)*(2*count+1) - correction/2) / 24)
	z := (sum - count*(count+1)/4) / deviation
	return 0.5 * math.Erfc(z/math.Sqrt2)
}

// exact returns the share of all signs of the differences that are not 0 with which
// twice the sum of positive ranks is at least what it is.
func exact(d []float64, doubled []int, least int) float64 {
	total := 0
	for _, r := range doubled {
		total += r
	}
	shares := make([]float64, total+1) // of the signs so far, by twice the sum
	shares[0] = 1
	for i, r := range doubled {
		if d[i] == 0 {
			continue
		}
		for sum := total; sum >= 0; sum-- {
			shares[sum] /= 2
			if sum >= r {
				shares[sum] += shares[sum-r] / 2
			}
		}
	}
	var p float64
	for _, share := range shares[least:] {
		p += share
	}
	return p
}
