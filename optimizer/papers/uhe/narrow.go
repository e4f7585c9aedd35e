package uhe

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
)

// The search of Shrink: the standard deviation that the next point must have, the step
// between factors, and the largest number of steps.
const (
	leastSpread = 0.1
	shrinkStep  = 1.25
	shrinkSteps = 20
)

// The search of Adaptive: the power of t that the regret follows, the step between
// factors, and the largest factor.
const (
	regretPower = 0.9
	growStep    = 1.1
	mostGrown   = 100
)

// mostNorm bounds by how much the norm bound grows: beyond it, points are chosen by their
// uncertainty alone, and with many parameters a float64 would not hold it.
const mostNorm = 1e6

// growth is how far Adaptive has gone. The zero growth has not begun.
type growth struct {
	// Points is the number of points chosen, t−1.
	Points int `json:"points,omitempty"`
	// Factor is g(t−1), by which the lengthscales were divided for the last point; 0
	// before the first.
	Factor float64 `json:"factor,omitempty"`
}

// valid reports whether the numbers are possible.
func (g *growth) valid() bool {
	return g.Points >= 0 && (g.Factor == 0 || g.Factor >= 1 && g.Factor <= mostGrown)
}

// least returns the smallest factor for the next point: g never falls, and g(0) = 1.
func (g *growth) least() float64 { return max(1, g.Factor) }

// kappa returns √β(t) for the factor g and d columns: the norm bound B(t) = B(0)·g^d, where
// base is B(0). A function whose lengthscales are g times as short has up to g^d times the
// squared norm, so the bound that held for it at first holds again.
func kappa(base, g float64, d int) float64 {
	return base * min(math.Pow(g, float64(d)), mostNorm)
}

// reference returns p(t) = t^0.9: the regret, in standard deviations of the outcomes, that
// the search may have had after t points, and that its model must allow for. It grows less
// than t, so that the regret of a point has the limit 0.
func reference(t int) float64 { return math.Pow(float64(t), regretPower) }

// enough reports whether the model of the given kappa allows the next point, which has the
// standard deviation sd, as much regret as the reference: a point's regret is at most
// 2·√β·sd, the width of the confidence interval.
func (g *growth) enough(kappa, sd float64) bool {
	t := g.Points + 1
	return 2*kappa*sd >= reference(t)-reference(t-1)
}

// narrow completes the batch of the input by Shrink or Adaptive: both divide the
// lengthscales of MAP, whose model is that of the input, by the least factor for which the
// next point is uncertain enough.
func (o proposer) narrow(ctx context.Context, in loop.Input, memory *memory) []optimizer.Suggestion {
	r, batch := in.Request, in.Batch
	m, whole := newModel(r.Encoding, in.Data, o.options.Prior), in.Models
	g, grows, dim := &memory.Growth, o.options.Method == Adaptive, r.Encoding.Dim()
	for len(batch) < r.N {
		in.Batch, in.Models = batch, whole
		factor, step, most := 1.0, shrinkStep, math.Pow(shrinkStep, shrinkSteps)
		if grows {
			factor, step, most = g.least(), growStep, mostGrown
			if narrower := m.narrower(memory.Fitted, factor); narrower != nil {
				in.Models = []bayes.Surrogate{bayes.Gaussian(narrower)}
			}
		}
		for {
			k := o.options.Kappa
			if grows {
				k = kappa(k, factor, dim)
				in.Criterion = acquisition.UCB{Kappa: k}
			}
			l := loop.New(ctx, in, loop.Options{Candidates: candidates})
			var t loop.Turn
			l.Score(ctx, &t)
			if l.Best(ctx, &t); !t.Found {
				return batch // the guard draws the missing points
			}
			_, variance := l.Main.Fantasies.Posterior(loop.Rows([]loop.Place{t.Best.Place}))
			sd := math.Sqrt(variance[0])
			enough := sd >= leastSpread
			if grows {
				enough = g.enough(k, sd)
			}
			var narrower *gp.Model
			if next := factor * step; !enough && next <= most*(1+1e-9) && ctx.Err() == nil {
				narrower = m.narrower(memory.Fitted, next)
			}
			if narrower == nil {
				batch = append(batch, l.Pick(t.Best))
				if grows {
					g.Points++
					g.Factor = factor
				}
				break
			}
			factor *= step
			in.Models = []bayes.Surrogate{bayes.Gaussian(narrower)}
		}
	}
	return batch
}

// narrower returns the process with the lengthscales of the hyperparameters divided by the
// factor; nil if there are no hyperparameters or no process.
func (m *model) narrower(h *gp.Hyperparameters, factor float64) *gp.Model {
	if h == nil {
		return nil
	}
	process, err := m.condition(m.shrunk(*h, factor))
	if err != nil {
		return nil
	}
	return process
}
