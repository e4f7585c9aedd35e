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
	// edges are the finite bounds of all boxes in each objective.
	edges [][]float64
	// A box has a pair of numbers of edges for each objective; none stands for −∞.
	boxes [][]interval
}

type interval struct{ low, high int }

const none = -1

// NewHypervolume returns the acquisition function for points of a front, one objective a
// column, all minimised. Points that are dominated, or not below the reference, count for
// nothing. The reference must be finite.
func NewHypervolume(front [][]float64, reference []float64) *Hypervolume {
	h := &Hypervolume{edges: make([][]float64, len(reference))}
	number := make([]map[float64]int, len(reference))
	for i := range number {
		number[i] = map[float64]int{math.Inf(-1): none}
	}
	edge := func(i int, at float64) int {
		k, known := number[i][at]
		if !known {
			k = len(h.edges[i])
			number[i][at] = k
			h.edges[i] = append(h.edges[i], at)
		}
		return k
	}
	for _, b := range pareto.Boxes(front, reference) {
		box := make([]interval, len(reference))
		for i := range box {
			box[i] = interval{edge(i, b.Low[i]), edge(i, b.High[i])}
		}
		h.boxes = append(h.boxes, box)
	}
	return h
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
