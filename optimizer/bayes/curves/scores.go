package curves

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// scale makes costs look normal. With the median m of the trials' best costs and the root mean
// square r of how far the lower half of them is below it,
//
//	z(cost) = (cost − m)/r      up to m
//	z(cost) = Φ⁻¹(½ + share/2)  above m
//
// where share is that of the costs above m, of all trials and steps, which are no worse. So
// differences among good trials count as they are, and of bad ones only their order: a trial that
// diverged is just the worst. Both halves have a root mean square of about 1 and meet at 0.
type scale struct {
	median, spread float64
	above          []float64 // sorted
}

// newScale returns the scale of points, of which each trial's last one has its best cost.
func newScale(all []point) scale {
	var ends []float64
	for i, p := range all {
		if i+1 == len(all) || all[i+1].trial != p.trial {
			ends = append(ends, p.cost)
		}
	}
	slices.Sort(ends)
	// Of an even number it is the lower of both, which is finite as long as half of the trials have a cost.
	s := scale{median: ends[(len(ends)-1)/2]}
	if math.IsInf(s.median, 1) {
		return s
	}
	var sum float64
	below := 0
	for ; below < len(ends) && ends[below] < s.median; below++ {
		sum += (ends[below] - s.median) * (ends[below] - s.median)
	}
	if below > 0 {
		s.spread = math.Sqrt(sum / float64(below))
	}
	for _, p := range all {
		if p.cost > s.median {
			s.above = append(s.above, p.cost)
		}
	}
	slices.Sort(s.above)
	return s
}

// of returns z of a cost.
func (s *scale) of(cost float64) float64 {
	if cost <= s.median {
		if s.spread == 0 || math.IsInf(s.median, 1) {
			return 0
		}
		return (cost - s.median) / s.spread
	}
	// Equal costs share the middle of their ranks.
	low := sort.SearchFloat64s(s.above, cost)
	high, _ := slices.BinarySearchFunc(s.above, cost, func(a, b float64) int { return cmp.Or(cmp.Compare(a, b), -1) })
	share := (float64(low+high) + 1) / float64(2*len(s.above)+2)
	return mathext.NormalQuantile(0.5 + min(share, 1-1e-9)/2)
}

// cost returns the cost with a score, the inverse of of. Above the median it is one that was seen.
func (s *scale) cost(z float64) float64 {
	if z <= 0 || len(s.above) == 0 {
		return s.median + z*s.spread
	}
	share := 1 - math.Erfc(z/math.Sqrt2)
	return s.above[min(len(s.above)-1, int(share*float64(len(s.above))))]
}
