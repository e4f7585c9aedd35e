package pareto

import (
	"math"
	"slices"
)

// Box is the points z with Low ≤ z < High.
type Box struct{ Low, High []float64 }

// Boxes cuts what a front leaves open into boxes that do not overlap: all z below the
// reference point that no point dominates. Low is −Inf where there is no bound. Points
// that are not below the reference count for nothing. There are at most n+1 boxes for n
// points and two objectives, and O(n) for three; for d the number can grow like n^⌊d/2⌋.
//
// The open region is the union of all that lies below its local upper bounds. Looked at
// from above, these bounds are points that dominate it: the boxes are those of their
// dominated region (Yang, Emmerich, Deutz and Bäck 2019, Efficient Computation of
// Expected Hypervolume Improvement Using Box Decomposition Algorithms).
func Boxes(points [][]float64, reference []float64) []Box {
	d := len(reference)
	open := newBounds(reference)
	for _, p := range points {
		if below(p, reference) {
			open.add(p)
		}
	}
	above := make([]float64, d)
	for i := range above {
		above[i] = math.Inf(1)
	}
	turned := newBounds(above)
	for _, u := range open.all {
		turned.add(negative(u.at))
	}
	var boxes []Box
	for _, u := range turned.all {
		if low, high, ok := u.dominated(above); ok {
			boxes = append(boxes, Box{negative(high), negative(low)})
		}
	}
	return boxes
}

func negative(p []float64) []float64 {
	c := make([]float64, len(p))
	for i, v := range p {
		c[i] = -v
	}
	return c
}

// bounds are the local upper bounds of a set of points within a reference point: what no
// point dominates is the union of all that lies below one of them (Klamroth, Lacour and
// Vanderpooten 2015, On the Representation of the Search Region in Multi-Objective
// Optimization).
type bounds struct{ all []bound }

// bound is a local upper bound. Its coordinate i is that of the point defining[i], which
// lies below the bound in every other coordinate.
type bound struct {
	at       []float64
	defining [][]float64
}

// newBounds returns those of no points: the reference, defined by points at infinity.
func newBounds(reference []float64) *bounds {
	first := bound{at: reference}
	for i := range reference {
		p := make([]float64, len(reference))
		for j := range p {
			p[j] = math.Inf(-1)
		}
		p[i] = reference[i]
		first.defining = append(first.defining, p)
	}
	return &bounds{[]bound{first}}
}

// add updates the bounds for one more point. Each bound above it gives way to those with
// one coordinate lowered to the point's, unless they would lie within others (the third
// algorithm of Klamroth et al.).
func (b *bounds) add(p []float64) {
	var kept, lowered []bound
	for _, u := range b.all {
		if !below(p, u.at) {
			kept = append(kept, u)
			continue
		}
		for j := range p {
			if p[j] >= u.floor(j) {
				lowered = append(lowered, u.lower(j, p))
			}
		}
	}
	b.all = append(kept, lowered...)
}

// floor is the largest coordinate j of the points that define the other coordinates.
func (u bound) floor(j int) float64 {
	v := math.Inf(-1)
	for k, p := range u.defining {
		if k != j {
			v = max(v, p[j])
		}
	}
	return v
}

func (u bound) lower(j int, p []float64) bound {
	l := bound{slices.Clone(u.at), slices.Clone(u.defining)}
	l.at[j], l.defining[j] = p[j], p
	return l
}

// dominated returns the bound's box of the dominated region, and whether it holds
// anything. The boxes of all bounds are that region, and do not overlap (Lacour, Klamroth
// and Fonseca 2017, A Box Decomposition Algorithm to Compute the Hypervolume Indicator,
// equation 2).
func (u bound) dominated(reference []float64) (low, high []float64, ok bool) {
	low, high = make([]float64, len(u.at)), slices.Clone(u.at)
	low[0], high[0] = u.defining[0][0], reference[0]
	for j := 1; j < len(low); j++ {
		low[j] = math.Inf(-1)
		for _, p := range u.defining[:j] {
			low[j] = max(low[j], p[j])
		}
	}
	return low, high, below(low, high)
}
