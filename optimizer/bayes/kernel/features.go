package kernel

import (
	"fmt"
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Features are functions of a point. Implementations are immutable and safe for concurrent
// use.
type Features interface {
	// Len returns the number of functions, at least 1.
	Len() int
	// Values returns the functions at the rows of x, which has been transformed: a row for each
	// point and a column for each function.
	Values(x *mat.Dense) *mat.Dense
	// Slopes returns, for each function, its derivatives by the coordinates of the rows of x.
	Slopes(x *mat.Dense) []*mat.Dense
}

// NewFeatures returns the kernel over the columns of a weighted sum of the functions of f, whose
// weights are independent and normal with the given mean and variance:
//
//	k(x, y) = variance·Σ_s f_s(x)·f_s(y)
//
// A process with this kernel, or with a sum that contains it, has the prior mean
// mean·Σ_s f_s(x): see Drift. It has no hyperparameters.
func NewFeatures(columns []Column, f Features, mean, variance float64) *Kernel {
	if f.Len() < 1 || !(variance > 0) {
		panic(fmt.Sprintf("kernel: %d functions whose weights have the variance %v", f.Len(), variance))
	}
	l := newLayout(columns)
	of := &features{layout: l, functions: f, mean: mean, variance: variance}
	return &Kernel{layout: l, of: of, drift: of}
}

// Drift returns the prior mean of a process with this kernel at the rows of x, which MUST come
// from Transform; nil if it is 0 everywhere.
func (k *Kernel) Drift(x *mat.Dense) []float64 {
	if k.drift == nil {
		return nil
	}
	n, _ := x.Dims()
	out := make([]float64, n)
	k.drift.prepare(nil, x, false).(*featured).addDrift(out, k.drift.mean)
	return out
}

// AddDrift adds the prior mean of a process with the points' kernel to dst, which has an element for each point.
func (p *Points) AddDrift(dst []float64) {
	if k := p.kernel; k.drift != nil {
		k.featured(p.of).addDrift(dst, k.drift.mean)
	}
}

// AddDriftSlopes adds the derivatives of the prior mean by the points' coordinates to dst, a row for each point. The
// points were prepared with slopes. Derivatives by columns that the kernel snaps are 0.
func (p *Points) AddDriftSlopes(dst *mat.Dense) {
	k := p.kernel
	if k.drift == nil {
		return
	}
	p.checkGradient(dst)
	for i := range p.n {
		row := dst.RawRowView(i)
		for _, slopes := range k.featured(p.of).slopes {
			floats.AddScaled(row, k.drift.mean, slopes.RawRowView(i))
		}
		k.hold(row)
	}
}

// featured returns the part of prepared points that the kernel's functions need.
func (k *Kernel) featured(p prepared) *featured {
	if all, ok := p.([]prepared); ok { // of a sum
		for _, one := range all {
			if f, ok := one.(*featured); ok {
				return f
			}
		}
	}
	return p.(*featured)
}

// Weights returns the posterior means of the functions' weights, given alpha, the inverse covariance of the
// observations at the transformed points x times what they lie above the prior mean:
//
//	mean + variance·Σ_i alpha_i·f_s(x_i)
//
// It is nil for a kernel without functions.
func (k *Kernel) Weights(x *mat.Dense, alpha []float64) []float64 {
	if k.drift == nil {
		return nil
	}
	values := k.drift.functions.Values(x)
	weights := make([]float64, k.drift.functions.Len())
	for s := range weights {
		weights[s] = k.drift.mean + k.drift.variance*floats.Dot(alpha, mat.Col(nil, s, values))
	}
	return weights
}

type features struct {
	layout
	functions      Features
	mean, variance float64
	// last are the points that were prepared last: a fit prepares the same ones for all
	// hyperparameters, of which the functions know nothing.
	last atomic.Pointer[featured]
}

// featured is points with the functions' values at them, as a table, and their slopes; nil if
// none were asked for.
type featured struct {
	table
	x      *mat.Dense
	slopes []*mat.Dense
}

// addDrift adds mean times the sum of the functions to dst.
func (p *featured) addDrift(dst []float64, mean float64) {
	for s := range p.numeric {
		floats.AddScaled(dst, mean, p.column(s)[:p.n])
	}
}

func (k *features) params() int { return 0 }

func (k *features) scratch() int { return 0 }

func (k *features) prepare(_ []float64, x *mat.Dense, slopes bool) prepared {
	if last := k.last.Load(); last != nil && last.x == x && (last.slopes != nil || !slopes) {
		return last
	}
	values := k.functions.Values(x)
	n, count := values.Dims()
	p := &featured{x: x, table: table{n: n, stride: padded(n), numeric: count}}
	p.data = make([]float64, p.stride*count)
	for s := range count {
		mat.Col(p.column(s)[:n], s, values)
	}
	if slopes {
		p.slopes = k.functions.Slopes(x)
	}
	k.last.Store(p)
	return p
}

func (k *features) row(dst []float64, _ [][]float64, x prepared, i int, y prepared, from int) {
	products(dst, &x.(*featured).table, i, &y.(*featured).table, from, k.variance)
}

func (k *features) diag(dst []float64, x prepared) {
	p := x.(*featured)
	for i := range dst {
		dst[i] = 0
		for s := range p.numeric {
			v := p.column(s)[i]
			dst[i] = math.FMA(v, v, dst[i])
		}
		dst[i] *= k.variance
	}
}

// gradientRow has Σ_j w_j ∂k/∂(x_i)_c = variance·Σ_s (Σ_j w_j f_s(y_j))·∂f_s(x_i)/∂(x_i)_c.
func (k *features) gradientRow(_, point []float64, _ [][]float64, x prepared, i int, y prepared, weights []float64) {
	p, other := x.(*featured), y.(*featured)
	clear(point)
	for s, slopes := range p.slopes {
		var total float64
		for j, v := range other.column(s) {
			total = math.FMA(weights[j], v, total)
		}
		for c, slope := range slopes.RawRowView(i) {
			point[c] = math.FMA(k.variance*total, slope, point[c])
		}
	}
	for _, c := range k.categorical {
		point[c] = 0
	}
}

// diagGradient has ∂k(x, x)/∂x_c = 2·variance·Σ_s f_s(x)·∂f_s(x)/∂x_c.
func (k *features) diagGradient(dst []float64, x prepared, i int) {
	p := x.(*featured)
	clear(dst)
	for s, slopes := range p.slopes {
		v := 2 * k.variance * p.column(s)[i]
		for c, slope := range slopes.RawRowView(i) {
			dst[c] = math.FMA(v, slope, dst[c])
		}
	}
	for _, c := range k.categorical {
		dst[c] = 0
	}
}
