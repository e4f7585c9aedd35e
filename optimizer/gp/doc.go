// Package gp is exact Gaussian process regression: hyperparameters by maximum a
// posteriori, posteriors of many points as matrix products, and fantasies,
// models conditioned further on points whose values are simulated.
//
// A model has a constant mean of zero: give it outcomes that Standardize
// returned. Nothing here reads a clock or a global source of randomness; the
// same arguments give the same results, bit for bit, on any number of cores.
package gp
