// Package acquisition holds the acquisition functions, a file for each: they rate how much
// a point is worth evaluating, given the posterior mean and standard deviation of the
// objective there. The objective is minimised; larger values of an acquisition function
// are better. Improvements and probabilities are returned as logarithms, since they
// underflow where an optimiser still has to tell points apart.
//
// Each file has the formula, as functions without state, and a type that implements
// bayes.Acquisition or bayes.Joint with it:
//
//	ei.go         expected improvement                LogEI, EI
//	pi.go         probability of improvement          LogPI
//	ucb.go        upper confidence bound              LCB, UCB
//	knowledge.go  knowledge gradient of one point     Knowledge
//	ehvi.go       expected hypervolume improvement    Hypervolume, EHVI
//	normal.go     the normal distribution's tails, which all of them need
//
// All functions are pure and safe for concurrent use.
package acquisition
