// Package gp is exact Gaussian process regression: maximum a posteriori
// hyperparameters, posteriors of many points as matrix products, and fantasies, which
// condition a model further on points that are still being evaluated.
//
// A model has a constant mean of zero: outcomes must come from Standardize. The package
// reads no clock and no global source of randomness; the same arguments give the same
// results, bit for bit, on any number of cores.
package gp
