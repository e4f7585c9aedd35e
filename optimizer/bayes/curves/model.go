package curves

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// The bounds of a model: its points, and those that its hyperparameters are fitted to.
const (
	mostPoints = 500
	mostFitted = 200
)

// fitSteps limits the iterations of a fit.
const fitSteps = 15

// Model is a Gaussian process conditioned on curves. It is immutable and safe for concurrent use.
type Model struct {
	process *gp.Model
	curves  []Curve
	last    int64
	scale   scale
	best    float64 // the lowest z of all points
	points  int
}

// New returns the model of curves of at most last steps over a space whose points have these columns. At
// least one curve MUST have a report with a finite cost. The hyperparameters are fitted to the
// curves from warm on, those of an earlier model, or from the middle of their priors if it is
// nil. If fit is false they stay as they are. rng chooses the curves of a fit if there are many.
// The error wraps linalg.ErrNotPositiveDefinite or is ctx's.
func New(
	ctx context.Context, columns []kernel.Column, curves []Curve, last int64, warm *gp.Hyperparameters, fit bool, rng *rand.Rand,
) (*Model, error) {
	k := kernel.NewCurves(kernel.NewMatern52(columns))
	all := points(curves, Grid(last), mostPoints)
	m := &Model{curves: curves, last: last, scale: newScale(all), points: len(all)}
	x, z := m.rows(all)
	m.best = slices.Min(z)
	config := config(len(columns))
	h := gp.Hyperparameters{Noise: config.NoiseFloor + math.Exp(config.Noise.Start)}
	for _, p := range config.Kernel {
		h.Kernel = append(h.Kernel, p.Start)
	}
	if warm != nil {
		h = *warm
	}
	if fit {
		fx, fz := x, z
		if some := sample(all, mostFitted, rng); len(some) < len(all) {
			fx, fz = m.rows(some)
		}
		config.Warm = &h
		fitted, err := gp.Fit(ctx, k, fx, fz, config, rng)
		if err != nil {
			return nil, fmt.Errorf("fit the model of curves: %w", err)
		}
		h = fitted.Model.Hyperparameters()
	}
	var err error
	if m.process, err = gp.Condition(k, h, x, z); err != nil {
		return nil, fmt.Errorf("model %d curves: %w", len(curves), err)
	}
	return m, nil
}

// config returns the priors. Each is log-normal, given by its median and by the standard
// deviation of the logarithm, whose density a fit maximises: gp.LogNormal is the density of the
// value itself, which has the same maximum with a mean that is larger by the variance. The
// variance of the inner kernel is fixed, since a₁ and a₂ scale it.
func config(columns int) gp.Config {
	prior := func(median, sigma float64) gp.Param {
		mu := math.Log(median)
		return gp.Param{Prior: gp.LogNormal{Mu: mu + sigma*sigma, Sigma: sigma}, Start: mu, Min: mu - 7*sigma, Max: mu + 7*sigma}
	}
	c := gp.Config{Noise: prior(2e-3, 1.5), NoiseFloor: 1e-5, Starts: 1, Explore: fitSteps, Subset: mostFitted}
	for range columns {
		c.Kernel = append(c.Kernel, prior(0.7, 1))
	}
	c.Kernel = append(c.Kernel, gp.Param{Fixed: true, Min: -1, Max: 1}, prior(1, 0.7), prior(0.4, 0.7), prior(0.1, 1), prior(1, 0.5))
	return c
}

// KernelSize returns how many hyperparameters the kernel has for a space of this many columns.
func KernelSize(columns int) int { return len(config(columns).Kernel) }

// rows returns the points as the kernel sees them, and their z.
func (m *Model) rows(list []point) (*mat.Dense, []float64) {
	x, z := mat.NewDense(len(list), len(m.curves[list[0].trial].X)+2, nil), make([]float64, len(list))
	for i, p := range list {
		x.SetRow(i, m.at(m.curves[p.trial].X, p.step, p.trial))
		z[i] = m.scale.of(p.cost)
	}
	return x, z
}

// at returns a point of the kernel. Curves change about as much from one step to twice as many
// as from there to four times as many, so steps count by their logarithm.
func (m *Model) at(x []float64, step int64, trial int) []float64 {
	return append(slices.Clone(x), math.Log1p(float64(step))/math.Log1p(float64(m.last)), float64(trial))
}

// sample returns the points of some trials, about most of them: half of the best trials, and
// others by chance. A trial has all of its points or none, since they say how curves go on.
func sample(all []point, most int, rng *rand.Rand) []point {
	if len(all) <= most {
		return all
	}
	var trials [][]point
	for start, i := 0, 1; i <= len(all); i++ {
		if i == len(all) || all[i].trial != all[start].trial {
			trials, start = append(trials, all[start:i]), i
		}
	}
	rng.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	best := slices.Clone(trials)
	slices.SortStableFunc(best, func(a, b []point) int { return cmp.Compare(a[len(a)-1].cost, b[len(b)-1].cost) })
	var kept []point
	taken := map[int]bool{}
	take := func(from [][]point, count int) {
		for _, t := range from {
			if len(kept)+len(t) <= count && !taken[t[0].trial] {
				kept, taken[t[0].trial] = append(kept, t...), true
			}
		}
	}
	take(best, most/2)
	take(trials, most)
	return kept
}

// Hyperparameters returns what the next model can start from.
func (m *Model) Hyperparameters() gp.Hyperparameters { return m.process.Hyperparameters() }

// Points returns how many points of curves the model was made from.
func (m *Model) Points() int { return m.points }

// Best returns the lowest cost of all curves, as the model sees it.
func (m *Model) Best() float64 { return m.best }
