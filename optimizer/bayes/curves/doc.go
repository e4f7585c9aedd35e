// Package curves models what the trials of a study report while they run: one Gaussian process
// over configurations and steps, as in freeze-thaw Bayesian optimisation (Swersky, Snoek and Adams
// 2014). It predicts where each trial would end, and where a new one would, so that a trial that
// runs, one that waits and one that has not begun can be compared.
//
// Everything is a pure function of its arguments: the same curves, hyperparameters and generator
// give the same model, bit for bit.
package curves
