// Package nsga2 minimises several objectives over the unit cube with a small
// population: NSGA-II of Deb, Pratap, Agarwal and Meyarivan (2002, A Fast and
// Elitist Multiobjective Genetic Algorithm), for objectives so cheap that the
// search around them must not be what takes the time.
//
// Numeric columns cross by simulated binary crossover (Deb and Agrawal 1995)
// and mutate polynomially, both in the forms that respect the bounds of [0, 1];
// categorical columns cross uniformly and mutate by another category. No two
// members of a population are the same point.
//
// A whole generation is evaluated by one call. Nothing is allocated after the
// first generation, and everything is drawn from one random source in one
// goroutine, so that a search is a function of its arguments, bit for bit.
package nsga2
