package acquisition

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// Hypervolume rates points by several objectives: by how much their values are expected
// to enlarge the hypervolume that a front dominates within a reference point. The
// objectives' posteriors are independent normal variables. It is immutable and safe for
// concurrent use.
//
// The expected improvement is that of the boxes which the front leaves open (Yang,
// Emmerich, Deutz and Bäck 2019, Multi-Objective Bayesian Global Optimization using
// Expected Hypervolume Improvement Gradient). With EI(e) = E[max(e − f, 0)] it is
//
//	Σ over the boxes  Π over the objectives  EI(high) − EI(low)
//
// Its logarithm has a slope also where the improvement underflows, as LogEI has.
type Hypervolume struct {
	// edges are the finite bounds of all boxes in each objective, ascending.
	edges [][]float64
	// A box has a pair of numbers of edges for each objective; none stands for −∞.
	boxes [][]interval
	// logSlopes are the logarithms of the unit's slopes up to each edge; nil without In.
	logSlopes [][]float64
}

type interval struct{ low, high int }

const none = -1

// The knots of In, for outcomes that are standardised. A transformed unit can end a little below the
// lowest edge: a straight line from there on would promise improvements that cannot be.
const (
	apart = 0.5
	below = 4.0
)

// leastSlope is the least slope of a unit for In, as a share of the mean one. Without it, an
// improvement to where a unit hardly changes would have no slope to climb.
const leastSlope = 1e-6

// NewHypervolume returns the acquisition function for points of a front, one objective a
// column, all minimised. Points that are dominated, or not below the reference, count for
// nothing. The reference must be finite.
func NewHypervolume(front [][]float64, reference []float64) *Hypervolume {
	h := &Hypervolume{edges: make([][]float64, len(reference))}
	boxes := pareto.Boxes(front, reference)
	for i := range reference {
		for _, b := range boxes {
			h.edges[i] = append(h.edges[i], b.Low[i], b.High[i])
		}
		slices.Sort(h.edges[i])
		h.edges[i] = slices.Compact(h.edges[i])
		if len(h.edges[i]) > 0 && math.IsInf(h.edges[i][0], -1) {
			h.edges[i] = h.edges[i][1:]
		}
	}
	for _, b := range boxes {
		box := make([]interval, len(reference))
		for i, edges := range h.edges {
			box[i] = interval{none, none}
			if low, found := slices.BinarySearch(edges, b.Low[i]); found {
				box[i].low = low
			}
			box[i].high, _ = slices.BinarySearch(edges, b.High[i])
		}
		h.boxes = append(h.boxes, box)
	}
	return h
}

// In returns the same acquisition function with volumes in other units: unit returns what an
// outcome of an objective is in its unit, and must not fall. It counts as straight between knots, which are the
// edges and places at most apart from each other, down to below the lowest edge. An expected improvement
// is then the sum over the lines of slope·(EI(high) − EI(low)).
func (h *Hypervolume) In(unit func(objective int, outcome float64) float64) *Hypervolume {
	in := &Hypervolume{edges: make([][]float64, len(h.edges)), logSlopes: make([][]float64, len(h.edges)), boxes: h.boxes}
	for i, edges := range h.edges {
		if len(edges) == 0 {
			continue
		}
		knots := []float64{edges[0] - below}
		place := make([]int, len(edges)) // of each edge among the knots
		for k, edge := range edges {
			from := knots[len(knots)-1]
			for n, more := 1, math.Ceil((edge-from)/apart); float64(n) < more; n++ {
				knots = append(knots, from+(edge-from)*float64(n)/more)
			}
			place[k] = len(knots)
			knots = append(knots, edge)
		}
		in.edges[i] = knots
		in.logSlopes[i] = logSlopes(knots, func(outcome float64) float64 { return unit(i, outcome) })
		in.boxes = moved(in.boxes, i, place)
	}
	return in
}

// moved returns the boxes with the numbers of an objective's edges replaced.
func moved(boxes [][]interval, objective int, place []int) [][]interval {
	out := make([][]interval, len(boxes))
	for n, box := range boxes {
		out[n] = slices.Clone(box)
		side := &out[n][objective]
		side.high = place[side.high]
		if side.low != none {
			side.low = place[side.low]
		}
	}
	return out
}

// logSlopes returns the logarithms of the slopes of a unit up to each knot, as shares of the mean slope.
// Below the lowest knot the slope is that above it.
func logSlopes(knots []float64, unit func(outcome float64) float64) []float64 {
	values := make([]float64, len(knots))
	for k, at := range knots {
		values[k] = unit(at)
	}
	last := len(knots) - 1
	mean := (values[last] - values[0]) / (knots[last] - knots[0])
	slopes := make([]float64, len(knots))
	for k := 1; k <= last; k++ {
		slope := (values[k] - values[k-1]) / (knots[k] - knots[k-1]) / mean
		if !(slope > leastSlope) { // also where the unit is the same all over
			slope = leastSlope
		}
		slopes[k] = math.Log(slope)
	}
	slopes[0] = slopes[1]
	return slopes
}

// LogEHVI returns the logarithm of the expected hypervolume improvement of a point with
// these posterior means and standard deviations, which must be positive: one of each for
// an objective.
func (h *Hypervolume) LogEHVI(mean, sd []float64) float64 {
	d := len(mean)
	return h.LogEHVIGradient(mean, sd, make([]float64, d), make([]float64, d))
}

// LogEHVIGradient returns LogEHVI, and sets dMean and dSD to its derivatives with respect
// to each mean and standard deviation.
func (h *Hypervolume) LogEHVIGradient(mean, sd, dMean, dSD []float64) float64 {
	improvements := make([][]improvement, len(mean))
	for i, edges := range h.edges {
		improvements[i] = make([]improvement, len(edges))
		for k, e := range edges {
			value, m, s := LogEIGradient(mean[i], sd[i], e)
			improvements[i][k] = improvement{value, m, s}
		}
	}
	h.measure(improvements)
	terms := make([]float64, len(h.boxes))
	parts := make([]improvement, len(h.boxes)*len(mean))
	for k, box := range h.boxes {
		for i, side := range box {
			part := improvements[i][side.high]
			if side.low != none {
				part = part.less(improvements[i][side.low])
			}
			parts[k*len(mean)+i] = part
			terms[k] += part.log
		}
	}
	clear(dMean)
	clear(dSD)
	largest := slices.Max(terms)
	if math.IsInf(largest, -1) {
		return largest
	}
	var sum float64
	for k, term := range terms {
		weight := math.Exp(term - largest)
		if weight == 0 { // its slopes may be infinite
			continue
		}
		sum += weight
		for i := range mean {
			part := parts[k*len(mean)+i]
			dMean[i] += weight * part.dMean
			dSD[i] += weight * part.dSD
		}
	}
	for i := range mean {
		dMean[i] /= sum
		dSD[i] /= sum
	}
	return largest + math.Log(sum)
}

// measure converts the improvements on the edges to the units of In.
func (h *Hypervolume) measure(improvements [][]improvement) {
	for i, slopes := range h.logSlopes {
		var before, sum improvement
		for k, slope := range slopes {
			on := improvements[i][k]
			part := on
			if k > 0 {
				part = on.less(before)
			}
			part.log += slope
			before = on
			if k > 0 {
				part = part.plus(sum)
			}
			sum = part
			improvements[i][k] = sum
		}
	}
}

// improvement is the logarithm of an expected improvement, or of a difference of two,
// with its derivatives.
type improvement struct{ log, dMean, dSD float64 }

// less returns the logarithm of the difference to a smaller improvement.
func (a improvement) less(b improvement) improvement {
	ratio := math.Exp(b.log - a.log)
	rest := -math.Expm1(b.log - a.log) // 1 − ratio without cancellation
	if rest <= 0 || math.IsInf(a.log, -1) {
		return improvement{log: math.Inf(-1)}
	}
	return improvement{a.log + math.Log(rest), (a.dMean - ratio*b.dMean) / rest, (a.dSD - ratio*b.dSD) / rest}
}

// plus returns the logarithm of the sum of two improvements.
func (a improvement) plus(b improvement) improvement {
	if a.log < b.log {
		a, b = b, a
	}
	ratio := math.Exp(b.log - a.log)
	if math.IsInf(b.log, -1) || ratio == 0 { // the slopes of b may be infinite
		return a
	}
	return improvement{a.log + math.Log1p(ratio), (a.dMean + ratio*b.dMean) / (1 + ratio), (a.dSD + ratio*b.dSD) / (1 + ratio)}
}

// EHVI is the acquisition function that users call logehvi: the logarithm of the expected
// improvement of a front's hypervolume.
type EHVI struct {
	*Hypervolume
	// Noise is the variance of an evaluation's noise in each objective. With it, EHVI compares
	// the posterior means after one more evaluation, as EI does; nil ignores noise.
	Noise []float64
}

var _ bayes.Joint = EHVI{}

// Name implements bayes.Joint.
func (EHVI) Name() string { return "logehvi" }

// Value implements bayes.Joint.
func (a EHVI) Value(mean, variance []float64) float64 {
	sd, _ := a.spread(variance)
	return a.LogEHVI(mean, sd)
}

// Gradient implements bayes.Joint.
func (a EHVI) Gradient(mean, variance, dMean, dVariance []float64) float64 {
	sd, slopes := a.spread(variance)
	value := a.LogEHVIGradient(mean, sd, dMean, dVariance)
	for i, slope := range slopes {
		dVariance[i] *= slope
	}
	return value
}

// spread returns the standard deviation that EHVI uses of each objective, and its derivative
// by the variance.
func (a EHVI) spread(variance []float64) (sd, slopes []float64) {
	sd, slopes = make([]float64, len(variance)), make([]float64, len(variance))
	for i, v := range variance {
		if a.Noise == nil {
			sd[i], slopes[i] = latentSD(v)
		} else {
			sd[i], slopes[i] = learntSD(v, a.Noise[i])
		}
	}
	return sd, slopes
}
