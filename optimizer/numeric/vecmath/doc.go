// Package vecmath holds the elementary functions of the surrogate models,
// element by element over vectors.
//
// Every element is computed by the same additions, products and fused multiply-adds in
// the same order. Results are the same bits on every processor, with or without vector
// instructions, at any place in the vector; only the payload of a NaN may differ.
//
// The vector instructions are written in Go's assembly instead of simd/archsimd: that
// exists only under GOEXPERIMENT=simd, which every build would have to set, and its Exp
// took 2.4 times as long (Go 1.26, AMD Zen 4).
package vecmath
