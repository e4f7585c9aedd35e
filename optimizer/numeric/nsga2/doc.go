// Package nsga2 minimises several objectives over the unit cube with a small
// population, by NSGA-II of Deb, Pratap, Agarwal and Meyarivan (2002, A Fast and
// Elitist Multiobjective Genetic Algorithm). It is made for cheap objectives, where the
// overhead of the search itself matters.
//
// Numeric columns cross by simulated binary crossover (Deb and Agrawal 1995) and mutate
// polynomially, both in the forms that respect the bounds of [0, 1]. Categorical
// columns cross uniformly and mutate to another category. All members of a population
// are distinct points.
//
// For objectives that are expensive, an Archive leaves the evaluations to its caller, who adds
// points as their evaluations end.
//
// One call of Minimize evaluates a whole generation. Everything is drawn from one random source in
// one goroutine, so a search is a function of its arguments, bit for bit.
package nsga2
