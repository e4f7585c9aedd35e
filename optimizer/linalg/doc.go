// Package linalg holds the dense linear algebra of the surrogate models that
// gonum lacks: loops shared by all cores whose results do not depend on how
// many there are, and a Cholesky factorisation that survives nearly singular
// matrices.
package linalg
