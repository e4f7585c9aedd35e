package kernel

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
)

// The hyperparameters of NewCurves behind those of the inner kernel.
const (
	curvesLevel = iota
	curvesShape
	curvesOwn
	curvesPace
	curvesParams
)

// NewCurves returns a kernel of what trials report while they run. Its points are those of
// inner, then a column with the step, on a scale on which curves change evenly, then a
// categorical one that tells trials apart:
//
//	k((x, s, t), (y, u, v)) = inner(x, y)·(a₁ + a₂·κ) + [t = v]·a₃·κ,  κ = exp(−|s − u|/p)
//
// The first term is what configurations say of the level of each other's curves, the second of
// their shape, and the third is a deviation that a trial has for itself: two trials of one
// configuration are alike, and not the same. κ is the covariance of Ornstein and Uhlenbeck's
// process: from the last report on, a curve goes its way without a memory of those before, as
// far as other curves do not say otherwise. A point whose trial has a negative number is of its configuration alone, without a
// deviation. Swersky, Snoek and Adams (2014, Freeze-Thaw
// Bayesian Optimization) also add a kernel over configurations and one over steps, but theirs
// over steps only decays.
//
// The hyperparameters are those of inner, then log a₁, log a₂, log a₃ and log p. One of inner's
// own variance and a₁, a₂ is redundant, so a fit MUST fix it.
func NewCurves(inner *Kernel) *Kernel {
	columns := append(append([]Column(nil), inner.columns...), Column{}, Column{Categorical: true})
	return &Kernel{layout: newLayout(columns), of: &curves{inner.of, inner.Dim()}}
}

type curves struct {
	inner covariance
	dim   int // columns of the inner kernel
}

// reports is points under curves.
type reports struct {
	inner                    prepared
	steps, trials            []float64 // padded
	level, shape, own, decay float64   // a₁, a₂, a₃, 1/p
}

func (k *curves) params() int { return k.inner.params() + curvesParams }

func (k *curves) scratch() int { return k.inner.scratch() + 3 }

// width implements wide.
func (k *curves) width() int {
	if w, ok := k.inner.(wide); ok {
		return w.width()
	}
	return k.dim
}

func (k *curves) prepare(theta []float64, x *mat.Dense, slopes bool) prepared {
	n, _ := x.Dims()
	own := theta[k.inner.params():]
	r := &reports{
		inner: k.inner.prepare(theta[:k.inner.params()], x.Slice(0, n, 0, k.dim).(*mat.Dense), slopes),
		steps: make([]float64, padded(n)), trials: make([]float64, padded(n)),
		level: math.Exp(own[curvesLevel]), shape: math.Exp(own[curvesShape]), own: math.Exp(own[curvesOwn]),
		decay: math.Exp(-own[curvesPace]),
	}
	for i := range n {
		r.steps[i], r.trials[i] = x.At(i, k.dim), x.At(i, k.dim+1)
	}
	return r
}

// decays sets dst[j] to κ between point i of x and point from+j of y. far is working memory of
// the same length, and has −|s − u|/p afterwards.
func decays(dst, far []float64, x *reports, i int, y *reports, from int) {
	for j, s := range y.steps[from:][:len(far)] {
		far[j] = -x.decay * math.Abs(x.steps[i]-s)
	}
	vecmath.Exp(dst, far)
}

func (k *curves) row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int) {
	rx, ry, more := x.(*reports), y.(*reports), scratch[k.inner.scratch():]
	kappa := more[0][:len(dst)]
	k.inner.row(dst, scratch, rx.inner, i, ry.inner, from)
	decays(kappa, more[1][:len(dst)], rx, i, ry, from)
	for j, trial := range ry.trials[from:][:len(dst)] {
		dst[j] *= math.FMA(rx.shape, kappa[j], rx.level)
		if trial == rx.trials[i] && trial >= 0 {
			dst[j] = math.FMA(rx.own, kappa[j], dst[j])
		}
	}
}

func (k *curves) diag(dst []float64, x prepared) {
	r := x.(*reports)
	k.inner.diag(dst, r.inner)
	floats.Scale(r.level+r.shape, dst)
	for i := range dst {
		if r.trials[i] >= 0 {
			dst[i] += r.own
		}
	}
}

// gradientRow has ∂k/∂log a of each of the three terms, which is that term, and
//
//	∂k/∂log p = (a₂·inner + a₃·[t = v])·κ·|s − u|/p
//	∂k/∂s     = −(a₂·inner + a₃·[t = v])·κ·sign(s − u)/p
//
// At s = u, κ has a kink, and 0 is the mean of its slopes.
func (k *curves) gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64) {
	rx, ry, more := x.(*reports), y.(*reports), scratch[k.inner.scratch():]
	inner, kappa, far := more[0][:len(weights)], more[1][:len(weights)], more[2][:len(weights)]
	k.inner.row(inner, scratch, rx.inner, i, ry.inner, 0)
	decays(kappa, far, rx, i, ry, 0)
	own := sums[k.inner.params():]
	var slope float64
	for j, w := range weights {
		level, shape, alone := float64(rx.level*inner[j]), float64(rx.shape*inner[j])*kappa[j], 0.0
		if ry.trials[j] == rx.trials[i] && rx.trials[i] >= 0 {
			alone = rx.own * kappa[j]
		}
		own[curvesLevel] = math.FMA(w, level, own[curvesLevel])
		own[curvesShape] = math.FMA(w, shape, own[curvesShape])
		own[curvesOwn] = math.FMA(w, alone, own[curvesOwn])
		moving := float64(w * (shape + alone))
		own[curvesPace] = math.FMA(-far[j], moving, own[curvesPace])
		switch apart := rx.steps[i] - ry.steps[j]; {
		case apart > 0:
			slope -= moving
		case apart < 0:
			slope += moving
		}
	}
	for j, w := range weights { // inner has been used, and makes place for its weights
		inner[j] = w * math.FMA(rx.shape, kappa[j], rx.level)
	}
	k.inner.gradientRow(sums[:k.inner.params()], point[:k.dim], scratch, rx.inner, i, ry.inner, inner)
	point[k.dim], point[k.dim+1] = slope*rx.decay, 0
}

// diagGradient is that of inner, since κ is 1 at any step.
func (k *curves) diagGradient(dst []float64, x prepared, i int) {
	r := x.(*reports)
	clear(dst)
	k.inner.diagGradient(dst[:k.dim], r.inner, i)
	floats.Scale(r.level+r.shape, dst[:k.dim])
}
