// Package diagnose holds the statistics by which a study is looked at: tests of
// whether groups have the same variance, rank correlations, and variance-based
// sensitivity indices. All of it is plain mathematics, pure, and safe for
// concurrent use.
package diagnose
