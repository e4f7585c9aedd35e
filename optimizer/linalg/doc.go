// Package linalg holds the dense linear algebra of the surrogate models that
// gonum lacks: loops shared by all cores whose results do not depend on how
// many there are, and a Cholesky factorisation that survives nearly singular
// matrices, with its triangular solves and inverse.
//
// Nearly all work is in a few loops that Go's assembly does for processors with
// AVX2 or AVX-512. Every sum has its terms in the same order there as in the Go
// code that other processors run, so results are the same bits everywhere.
package linalg
