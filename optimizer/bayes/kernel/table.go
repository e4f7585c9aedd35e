package kernel

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// padding is the multiple to which the columns of a table are padded: four vectors of
// four.
const padding = 16

func padded(n int) int { return (n + padding - 1) / padding * padding }

// table holds n points column by column, so that the inner loops run over contiguous
// memory: first the numeric columns, then the categorical ones, each padded with zeros.
type table struct {
	n, stride            int
	numeric, categorical int
	data                 []float64 // column k of point i is data[k*stride+i]
}

// newTable returns the points with numeric values v as scale[k]·v + shift.
func (l *layout) newTable(x *mat.Dense, scale []float64, shift float64) table {
	n, d := x.Dims()
	l.checkDim(d)
	t := table{n: n, stride: padded(n), numeric: len(l.numeric), categorical: len(l.categorical)}
	t.data = make([]float64, t.stride*d)
	raw := x.RawMatrix()
	for k, c := range l.numeric {
		for i, to := 0, t.column(k); i < n; i++ {
			to[i] = float64(scale[k]*raw.Data[i*raw.Stride+c]) + shift
		}
	}
	for k, c := range l.categorical {
		for i, to := 0, t.column(t.numeric+k); i < n; i++ {
			to[i] = raw.Data[i*raw.Stride+c]
		}
	}
	return t
}

func (t *table) column(k int) []float64 { return t.data[k*t.stride : (k+1)*t.stride] }

// The functions below compute each element by the same fused multiply-adds in
// the same order, with vector instructions or without. Optimisers promise
// to repeat their answers bit for bit, whatever the processor.

// distances sets dst[j] to factor·√(Σ_numeric δ² + Σ_categorical weights[k]·[differ])
// between point i of x and point from+j of y.
func distances(dst []float64, x *table, i int, y *table, from int, weights []float64, factor float64) {
	done := distancesVector(dst, x, i, y, from, weights, factor)
	dst, from = dst[done:], from+done
	clear(dst)
	for k := range x.numeric {
		v := x.data[k*x.stride+i]
		for j, u := range y.column(k)[from:][:len(dst)] {
			dst[j] = math.FMA(v-u, v-u, dst[j])
		}
	}
	for k, w := range weights {
		v := x.data[(x.numeric+k)*x.stride+i]
		for j, u := range y.column(y.numeric + k)[from:][:len(dst)] {
			if u != v {
				dst[j] += w
			}
		}
	}
	for j, v := range dst {
		dst[j] = factor * math.Sqrt(v)
	}
}

// products sets dst[j] to factor·(Σ_numeric x·y + Σ_categorical [same]) of point
// i of x and point from+j of y.
func products(dst []float64, x *table, i int, y *table, from int, factor float64) {
	done := productsVector(dst, x, i, y, from, factor)
	dst, from = dst[done:], from+done
	clear(dst)
	for k := range x.numeric {
		v := x.data[k*x.stride+i]
		for j, u := range y.column(k)[from:][:len(dst)] {
			dst[j] = math.FMA(v, u, dst[j])
		}
	}
	for k := range x.categorical {
		v := x.data[(x.numeric+k)*x.stride+i]
		for j, u := range y.column(y.numeric + k)[from:][:len(dst)] {
			if u == v {
				dst[j]++
			}
		}
	}
	for j := range dst {
		dst[j] *= factor
	}
}

// moments sets dst[k] to Σ_j g[j]·(x − y_j) for the numeric columns of point i of
// x and the points of y, and to Σ_j g[j]·[differ] for the categorical ones. g has
// y.stride elements, which MUST be 0 beyond the points: the padding of y would count otherwise. Sums are
// kept in 16 lanes, four vectors of four, so that an addition need not wait for the one before.
func moments(dst, g []float64, x *table, i int, y *table) {
	if !momentsVector(dst, g, x, i, y) {
		momentsGo(dst, g, x, i, y)
	}
}

func momentsGo(dst, g []float64, x *table, i int, y *table) {
	for k := range dst {
		v, column := x.data[k*x.stride+i], y.column(k)
		var lanes [padding]float64
		for j := 0; j < len(column); j += padding {
			weights := g[j:][:padding]
			for l, u := range column[j:][:padding] {
				switch {
				case k < x.numeric:
					lanes[l] = math.FMA(weights[l], v-u, lanes[l])
				case u != v:
					lanes[l] += weights[l]
				}
			}
		}
		for l := range 4 {
			lanes[l] = (lanes[l] + lanes[4+l]) + (lanes[8+l] + lanes[12+l])
		}
		dst[k] = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
	}
}
