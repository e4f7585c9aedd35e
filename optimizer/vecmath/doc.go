// Package vecmath holds the elementary functions of the surrogate models,
// element by element over vectors.
//
// Every element is computed by the same additions, products and fused
// multiply-adds in the same order, whatever the processor, its vector
// instructions, and the element's place in the vector: results are the same
// bits everywhere, but for what a NaN carries.
package vecmath
