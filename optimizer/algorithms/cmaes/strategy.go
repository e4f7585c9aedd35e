package cmaes

import "math"

// maxFull is the largest number of coordinates with a full covariance matrix. Beyond it
// the matrix is diagonal: it fits the state and is learnt in fewer evaluations.
const maxFull = 64

// strategy holds the constants of the updates, which depend on the number of coordinates
// and the population. Equations are those of Hansen's tutorial (2016, arXiv 1604.00772);
// a diagonal matrix has those of sep-CMA-ES (Ros and Hansen 2008), with cmaes' choices.
type strategy struct {
	dim, parents       int
	diagonal           bool
	weights            []float64 // one for each rank, the best first; some negative
	mass               float64   // the effective number of parents, μ_eff
	rankOne, rankMu    float64   // learning rates of the covariance matrix, c_1 and c_μ
	pathSigma, damping float64   // c_σ and d_σ
	pathC              float64   // c_c
	length             float64   // the expected length of a standard normal vector
}

func newStrategy(dim, population int) strategy {
	s := strategy{dim: dim, parents: population / 2, diagonal: dim > maxFull}
	n := float64(dim)
	s.weights = make([]float64, population)
	var positive, negative, squares, negativeSquares float64
	last := float64(population+1) / 2
	if s.diagonal {
		last = float64(s.parents + 1)
	}
	for i := range s.weights {
		if s.diagonal && i >= s.parents {
			continue
		}
		w := math.Log(last) - math.Log(float64(i+1))
		s.weights[i] = w
		if i < s.parents {
			positive, squares = positive+w, squares+w*w
		} else {
			negative, negativeSquares = negative-w, negativeSquares+w*w
		}
	}
	s.mass = positive * positive / squares
	s.rankOne = 2 / ((n+1.3)*(n+1.3) + s.mass)
	s.length = math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	if s.diagonal {
		full := 2/s.mass/((n+math.Sqrt2)*(n+math.Sqrt2)) + (1-1/s.mass)*min(1, (2*s.mass-1)/((n+2)*(n+2)+s.mass))
		s.rankMu = min((n+2)/3*full, 1-s.rankOne)
		s.pathSigma = (s.mass + 2) / (n + s.mass + 3)
		s.pathC = 4 / (n + 4)
	} else {
		s.rankMu = min(1-s.rankOne-1e-8, 2*(s.mass-2+1/s.mass)/((n+2)*(n+2)+s.mass))
		s.pathSigma = (s.mass + 2) / (n + s.mass + 5)
		s.pathC = (4 + s.mass/n) / (n + 4 + 2*s.mass/n)
	}
	s.damping = 1 + 2*max(0, math.Sqrt((s.mass-1)/(n+1))-1) + s.pathSigma
	scale := 0.0
	if negative > 0 {
		scale = min(1+s.rankOne/s.rankMu, 1+2*(negative*negative/negativeSquares)/(s.mass+2), (1-s.rankOne-s.rankMu)/(n*s.rankMu)) / negative
	}
	for i, w := range s.weights {
		if i < s.parents {
			s.weights[i] = w / positive
		} else {
			s.weights[i] = w * scale
		}
	}
	return s
}

// populationOf returns the usual population for dim coordinates, as the nearest multiple
// of the number of trials that run at once: in batches, all of a generation's points
// then come from one distribution.
func populationOf(dim, parallelism int) int {
	usual := 4 + int(3*math.Log(float64(max(1, dim))))
	if parallelism <= 1 {
		return usual
	}
	return min(4*usual, max(parallelism, (usual+parallelism/2)/parallelism*parallelism))
}

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
