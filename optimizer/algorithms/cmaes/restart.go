package cmaes

import "math"

// restart begins another run at a random place. Large runs have twice the population of
// the large run before; small ones, of BIPOP (Hansen 2009, Benchmarking a BI-population
// CMA-ES on the BBOB-2009 function testbed), a population between the first one and half
// the large one, and a smaller step.
func (t *task) restart(m *memory) {
	first := t.population()
	if m.Small {
		m.SmallSpent += m.Evaluations
	} else {
		m.LargeSpent += m.Evaluations
	}
	m.Run++
	m.Generation++
	sigma := t.options.Sigma
	m.Small = t.options.Restarts == BIPOP && m.Run > 1 && m.SmallSpent < m.LargeSpent
	switch {
	case t.options.Restarts == Same:
		m.Population = first
	case m.Small:
		u := t.r.Rand.Float64()
		m.Population = int(float64(first) * math.Pow(float64(large(first, m.Larger))/float64(2*first), u*u))
		sigma *= math.Pow(10, -2*t.r.Rand.Float64())
	default:
		m.Larger++
		m.Population = large(first, m.Larger)
	}
	mean := make([]float64, len(t.numeric))
	for i := range mean {
		mean[i] = t.r.Rand.Float64()
	}
	t.start(m, mean, sigma)
}

// maxPopulation bounds what a generation takes from the study's budget and the state.
const maxPopulation = 10_000

// large returns the population after so many doublings.
func large(first, doublings int) int {
	return int(min(maxPopulation, float64(first)*math.Exp2(float64(min(doublings, 30)))))
}
