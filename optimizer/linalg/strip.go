package linalg

import "math"

// A strip is a handful of successive rows, which are solved together: once the
// rows before them have been subtracted, each of their columns is a triangular
// system of its own.
const (
	strip = 8
	// lanes is how many columns are worked on at once.
	lanes = 4
)

// stripFactors are a strip's part of a triangular matrix: for each row, in the
// order in which they are solved, what the rows before it are to be multiplied
// with, and the inverse of its diagonal element.
type stripFactors [strip * (strip + 1) / 2]float64

// forward sets f for L, whose transposed is u, rows 0…size−1.
func (f *stripFactors) forward(u matrix, size int) {
	f.set(size, func(row, before int) float64 { return u.data[before*u.stride+row] })
}

// backward sets f for Lᵀ = u, rows size−1…0.
func (f *stripFactors) backward(u matrix, size int) {
	last := size - 1
	f.set(size, func(row, before int) float64 { return u.data[(last-row)*u.stride+last-before] })
}

// set sets f to elements of a triangular matrix, filled up by ones on the
// diagonal.
func (f *stripFactors) set(size int, element func(row, before int) float64) {
	i := 0
	for row := range strip {
		for before := range row {
			f[i] = 0
			if row < size {
				f[i] = element(row, before)
			}
			i++
		}
		f[i] = 1
		if row < size {
			f[i] = 1 / element(row, row)
		}
		i++
	}
}

// solveRows solves for size rows of data in cols columns: row p begins at
// data[first+p*step].
func solveRows(f *stripFactors, data []float64, first, step, size, cols int) {
	done := 0
	if size == strip {
		done = cols / lanes * lanes
		solveStrip(f, data, first, step, done/lanes)
	}
	for j := done; j < cols; j += lanes {
		var edge [strip * lanes]float64
		width := min(lanes, cols-j)
		for p := range size {
			copy(edge[p*lanes:], data[first+p*step+j:][:width])
		}
		solveStrip(f, edge[:], 0, lanes, 1)
		for p := range size {
			copy(data[first+p*step+j:][:width], edge[p*lanes:])
		}
	}
}

// solveStripGo solves for a whole strip in the given number of groups of lanes
// columns.
func solveStripGo(f *stripFactors, data []float64, first, step, groups int) {
	i := 0
	for p := range strip {
		row := data[first+p*step:][:groups*lanes]
		for k := range p {
			subtract(row, data[first+k*step:], f[i])
			i++
		}
		scale(row, f[i])
		i++
	}
}

// subtract subtracts factor·v from dst.
func subtract(dst, v []float64, factor float64) {
	v = v[:len(dst)]
	for i := range dst {
		dst[i] = math.FMA(-factor, v[i], dst[i])
	}
}

func scale(v []float64, factor float64) {
	for i := range v {
		v[i] *= factor
	}
}
