package nsga2

import "math/rand/v2"

// Archive is a population for searches whose objectives are expensive: the caller evaluates
// the points, in any order and any number at once, and adds them as they come. It selects as
// Minimize does, each time that as many points were added as the population has, and it makes
// children one by one. It is not safe for concurrent use.
type Archive struct {
	s    *search
	born int // points behind the population that have not been selected from
}

// NewArchive returns an empty archive for a number of objectives. The population is 2 or more.
func NewArchive(variables []Variable, objectives, population int, rng *rand.Rand) *Archive {
	return &Archive{s: newSearch(Problem{Variables: variables, Objectives: objectives}, Options{Population: population}, rng)}
}

// Add adds an evaluated point of the unit cube and its objectives, of which smaller is better.
// It copies both.
func (a *Archive) Add(x, objectives []float64) {
	n := a.s.size + a.born
	copy(a.s.x.row(n), x)
	copy(a.s.f.row(n), objectives)
	bound(a.s.f.row(n))
	if a.born++; a.born == a.s.options.Population {
		a.selects()
	}
}

// selects reduces what was added to a population.
func (a *Archive) selects() {
	if a.born > 0 {
		a.s.survive(a.s.size + a.born)
		a.s.turn, a.born = len(a.s.parents), 0
	}
}

// Len returns the number of points that children would be made of, at most the population.
func (a *Archive) Len() int {
	a.selects()
	return a.s.size
}

// Child sets x to a child of two members. The archive MUST NOT be empty. The child may be a
// point that the archive has.
func (a *Archive) Child(x []float64) {
	a.selects()
	s := a.s
	s.variation.cross(s.x.row(s.tournament()), s.x.row(s.tournament()), x, s.spare)
	s.variation.mutate(x)
	for i, v := range s.problem.Variables {
		if x[i] = unit(x[i]); v.Levels > 0 {
			x[i] = unitOfLevel(levelOf(x[i], v.Levels), v.Levels)
		}
	}
}
