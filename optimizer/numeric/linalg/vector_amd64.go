package linalg

import "golang.org/x/sys/cpu"

// These functions do the same as those with Go in their names, using vector
// instructions if the processor has them. The assembly does not check bounds, so they
// do.

func vectors() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

func tile(width, terms int, a leftFactor, b, c matrix, sign float64) {
	if !vectors() {
		tileGo(width, terms, a, b, c, sign)
		return
	}
	_ = a.data[(tileRows-1)*a.byRow+(terms-1)*a.byTerm]
	_ = b.data[(terms-1)*b.stride+width-1]
	_ = c.data[(tileRows-1)*c.stride+width-1]
	switch {
	case !cpu.X86.HasAVX512F:
		tileByParts(width, terms, a, b, c, sign)
	case width == tileCols:
		tile16AVX512(terms, &a.data[0], a.byRow, a.byTerm, &b.data[0], b.stride, &c.data[0], c.stride, sign)
	default:
		tile8AVX512(terms, &a.data[0], a.byRow, a.byTerm, &b.data[0], b.stride, &c.data[0], c.stride, sign)
	}
}

// tileByParts is tile for processors with AVX2 and FMA.
func tileByParts(width, terms int, a leftFactor, b, c matrix, sign float64) {
	for i := 0; i < tileRows; i += 4 {
		for j := 0; j < width; j += 8 {
			tileAVX2(terms, &a.data[i*a.byRow], a.byRow, a.byTerm, &b.data[j], b.stride, &c.data[i*c.stride+j], c.stride, sign)
		}
	}
}

func solveStrip(f *stripFactors, data []float64, first, step, groups int) {
	if !vectors() || groups == 0 {
		solveStripGo(f, data, first, step, groups)
		return
	}
	last := first + (strip-1)*step
	_, _ = data[min(first, last)], data[max(first, last)+groups*lanes-1]
	solveStripAVX2(f, &data[first], step, groups)
}

func subtractGroups(dst, factors []float64, rows matrix, groups int) {
	if !vectors() {
		subtractGroupsGo(dst, factors, rows, groups)
		return
	}
	_, _, _ = dst[groups*lanes-1], factors[strip-1], rows.data[(strip-1)*rows.stride+groups*lanes-1]
	subtractRowsAVX2(&dst[0], &factors[0], &rows.data[0], rows.stride, groups)
}

func squareGroups(dst []float64, rows matrix, groups int) {
	if !vectors() {
		squareGroupsGo(dst, rows, groups)
		return
	}
	_, _ = dst[groups*lanes-1], rows.data[(strip-1)*rows.stride+groups*lanes-1]
	addSquaresAVX2(&dst[0], &rows.data[0], rows.stride, groups)
}

func dotGroups(sums *[strip * lanes]float64, v []float64, rows matrix, groups int) {
	if !vectors() {
		dotGroupsGo(sums, v, rows, groups)
		return
	}
	_, _ = v[groups*lanes-1], rows.data[(strip-1)*rows.stride+groups*lanes-1]
	dotRowsAVX2(sums, &v[0], &rows.data[0], rows.stride, groups)
}

// tile16AVX512 is tileGo of 16 columns, for processors with AVX-512.
//
//go:noescape
func tile16AVX512(terms int, a *float64, byRow, byTerm int, b *float64, stride int, c *float64, cStride int, sign float64)

// tile8AVX512 is tileGo of 8 columns, for processors with AVX-512.
//
//go:noescape
func tile8AVX512(terms int, a *float64, byRow, byTerm int, b *float64, stride int, c *float64, cStride int, sign float64)

// tileAVX2 is a quarter or a half of a tile: 4 rows and 8 columns.
//
//go:noescape
func tileAVX2(terms int, a *float64, byRow, byTerm int, b *float64, stride int, c *float64, cStride int, sign float64)

// solveStripAVX2 is solveStripGo for at least one group, whose first row b
// points at; stride is from row to row.
//
//go:noescape
func solveStripAVX2(factors *stripFactors, b *float64, stride, groups int)

// subtractRowsAVX2 is subtractGroupsGo for at least one group.
//
//go:noescape
func subtractRowsAVX2(dst, factors, rows *float64, stride, groups int)

// dotRowsAVX2 is dotGroupsGo for at least one group.
//
//go:noescape
func dotRowsAVX2(sums *[strip * lanes]float64, v, rows *float64, stride, groups int)

// addSquaresAVX2 is squareGroupsGo for at least one group.
//
//go:noescape
func addSquaresAVX2(dst, rows *float64, stride, groups int)
