// Package vecmath holds the elementary functions of the surrogate models,
// element by element over vectors.
//
// Every element is computed by the same additions, products and fused
// multiply-adds in the same order, whatever the processor, its vector
// instructions, and the element's place in the vector: results are the same
// bits everywhere, but for what a NaN carries.
//
// The vector instructions are written in Go's assembly and not with
// simd/archsimd: that exists under GOEXPERIMENT=simd only, which would have to
// be set in every build, and its Exp took 2.4 times as long (Go 1.26, AMD Zen 4).
package vecmath
