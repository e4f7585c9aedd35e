// Package linalg holds dense linear algebra of the surrogate models that gonum lacks:
// loops shared by all cores whose results do not depend on the number of cores, and a
// Cholesky factorisation that tolerates nearly singular matrices, with its triangular
// solves and inverse.
//
// Nearly all work is in a few loops, which are written in Go assembly for processors
// with AVX2 or AVX-512. The assembly adds terms in the same order as the Go code for
// other processors, so results are the same bits everywhere. Gonum's blas64 leaves that order open.
package linalg
