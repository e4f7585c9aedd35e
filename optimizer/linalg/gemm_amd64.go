package linalg

import "golang.org/x/sys/cpu"

// tile is tileGo, with vector instructions where the processor has them.
func tile(terms int, a []float64, byRow, byTerm int, b []float64, stride int, c []float64, cStride int, sign float64) {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		tileGo(terms, a, byRow, byTerm, b, stride, c, cStride, sign)
		return
	}
	// The assembly checks no bounds.
	_ = a[(tileRows-1)*byRow+(terms-1)*byTerm]
	_ = b[(terms-1)*stride+tileCols-1]
	_ = c[(tileRows-1)*cStride+tileCols-1]
	tileAVX2(terms, &a[0], byRow, byTerm, &b[0], stride, &c[0], cStride, sign)
}

// tileAVX2 is tileGo for processors with AVX2 and FMA. terms must be positive.
//
//go:noescape
func tileAVX2(terms int, a *float64, byRow, byTerm int, b *float64, stride int, c *float64, cStride int, sign float64)
