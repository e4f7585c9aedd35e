package linalg

import "math"

// A strip is a few successive rows that are solved together: once the rows before them
// have been subtracted, each of their columns is a separate triangular system.
const (
	strip = 8
	// lanes is the number of columns that are processed at once.
	lanes = 4
)

// stripFactors are a strip's part of a triangular matrix: for each row, in the order in
// which they are solved, the factors of the rows before it, and the inverse of its
// diagonal element.
type stripFactors [strip * (strip + 1) / 2]float64

// forward sets f for eight rows of L, whose transpose is u.
func (f *stripFactors) forward(u matrix) {
	i := 0
	for row := range strip {
		for before := range row {
			f[i] = u.data[before*u.stride+row]
			i++
		}
		f[i] = 1 / u.data[row*u.stride+row]
		i++
	}
}

// backward sets f for eight rows of Lᵀ = u, the last one first.
func (f *stripFactors) backward(u matrix) {
	const last = strip - 1
	i := 0
	for row := range strip {
		for before := range row {
			f[i] = u.data[(last-row)*u.stride+last-before]
			i++
		}
		f[i] = 1 / u.data[(last-row)*u.stride+last-row]
		i++
	}
}

// solveRows solves for the rows lo…hi−1 of a strip in cols columns: row p begins
// at data[first+p*step]. The other rows are beyond the matrix.
func solveRows(f *stripFactors, data []float64, first, step, lo, hi, cols int) {
	done := 0
	if hi-lo == strip {
		done = cols / lanes * lanes
		solveStrip(f, data, first, step, done/lanes)
	}
	for j := done; j < cols; j += lanes {
		var edge [strip * lanes]float64
		width := min(lanes, cols-j)
		for p := lo; p < hi; p++ {
			copy(edge[p*lanes:], data[first+p*step+j:][:width])
		}
		solveStrip(f, edge[:], 0, lanes, 1)
		for p := lo; p < hi; p++ {
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
