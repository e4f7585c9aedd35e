// Package diagnose holds the statistics for analysing a study: tests of equal
// variances, rank correlations, and variance-based sensitivity indices. Its functions
// are pure and safe for concurrent use.
package diagnose
