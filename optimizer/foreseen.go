package optimizer

import "slices"

// fewEnded is the number of ended evaluations from which on an algorithm is not told how pending ones will probably end. What is
// foreseen lets a model begin while the first trainings run. Later it says little that the others do not, and less surely.
const fewEnded = 32

// foreseer is an algorithm that learns from nothing but its problem. One that remembers what it was told, as an evolution
// remembers a generation, would learn from an evaluation twice.
type foreseer interface {
	// Foresees reports whether the algorithm is told of pending evaluations that will probably end with known values as if they had
	// completed with them, as long as few have ended.
	Foresees() bool
}

// foreseen makes pending evaluations that will probably end with known values completed ones, behind the problem's observations, and
// returns how many these are. Of limits nothing is foreseen, so that there are none.
func (r *Request) foreseen() int {
	if len(r.Observations) >= fewEnded || len(r.Limits) > 0 {
		return 0
	}
	problem := *r.Problem
	problem.Observations, problem.Pending = slices.Clip(r.Observations), nil
	for _, p := range r.Pending {
		if p.Likely == nil {
			problem.Pending = append(problem.Pending, p)
			continue
		}
		problem.Observations = append(problem.Observations, Observation{
			Trial: p.Trial, Point: p.Point, Outcome: OutcomeCompleted, Values: p.Likely,
		})
	}
	told := len(r.Pending) - len(problem.Pending)
	if told > 0 {
		r.Problem = &problem
	}
	return told
}
