package loop

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// steepestAmong is the number of places searched for the steepest slope.
const steepestAmong = 100

// penalty is local penalisation (González et al. 2016, Batch Bayesian
// Optimization via Local Penalization): a point that is being evaluated keeps
// others out of the ball that, by the objective's steepest slope, cannot hold
// the minimum. It is the sum over the pending points j of
//
//	log Φ((L·|x − x_j| − (μ_j − m)) / σ_j)
//
// where L is the largest slope of the posterior mean and m the lowest value.
type penalty struct {
	slope, lowest float64
	centres       [][]float64
	mean, sd      []float64
}

// estimate sets the slope, from some of the search's places, and the lowest value.
func (p *penalty) estimate(l *Loop) {
	p.lowest = l.Main.Known.Incumbents[0]
	at := l.Places[:min(len(l.Places), steepestAmong)]
	if len(at) == 0 {
		return
	}
	x := Rows(at)
	g := l.Main.Fantasies.Gradients(x)
	mean, _ := l.Main.Fantasies.Posterior(x)
	for i := range at {
		p.slope = max(p.slope, floats.Norm(g.DMean[0].RawRowView(i), 2))
		// The gradient is 0 in discrete columns: use the slope of a chord there.
		for j := range i {
			if distance := floats.Distance(at[i].X, at[j].X, 2); distance > 0 {
				p.slope = max(p.slope, math.Abs(mean.At(i, 0)-mean.At(j, 0))/distance)
			}
		}
	}
}

// add penalises around a pending point with the given posterior.
func (p *penalty) add(at []float64, mean, variance float64) {
	p.centres = append(p.centres, at)
	p.mean, p.sd = append(p.mean, mean), append(p.sd, math.Sqrt(variance))
}

// value returns the penalty at x and adds its gradient to dst unless dst is nil.
func (p *penalty) value(dst, x []float64) float64 {
	if p == nil {
		return 0
	}
	var sum float64
	for j, centre := range p.centres {
		distance := floats.Distance(x, centre, 2)
		z := (p.slope*distance - (p.mean[j] - p.lowest)) / p.sd[j]
		value, slope := acquisition.LogCDFGradient(z)
		sum += value
		if dst == nil || distance == 0 {
			continue
		}
		ratio := slope * p.slope / (p.sd[j] * distance)
		for i := range dst {
			dst[i] += ratio * (x[i] - centre[i])
		}
	}
	return sum
}
