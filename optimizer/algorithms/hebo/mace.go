package hebo

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// maceMargin is the amount that an improvement must exceed, in standard deviations of
// the outcomes (the ε of HEBO's acquisitions).
const maceMargin = 1e-4

// mace is the multi-objective acquisition ensemble (Lyu et al. 2018; Cowen-Rivers et al. 2022,
// equation 2): it finds the points that are Pareto optimal for the lower confidence bound,
// the expected improvement and the probability of improvement.
type mace struct {
	s      *search
	kappa  float64
	robust float64 // the scale of the noise added to the mean
	noise  float64
	rng    *rand.Rand
}

// newMACE prepares the ensemble for a search.
func newMACE(s *search) *mace {
	r := s.Request
	m := &mace{s: s, kappa: confidence(s.Data.Completed, r.Parallelism, r.Encoding.Dim()), noise: s.Main.Model.Noise(), rng: r.Rand}
	if s.options.Robust {
		m.robust = robustness(m.noise)
	}
	return m
}

// confidence returns the κ of the lower confidence bound in HEBO's submission (Srinivas
// et al. 2010's schedule, with δ = 0.01 and half its width) after n evaluations of dim columns, in rounds of
// parallel evaluations. t counts rounds also where one point is asked for at a time: with
// t = n the bound explores too much when many run at once.
func confidence(n, parallel, dim int) float64 {
	t := max(1, n/max(1, parallel))
	return math.Sqrt((2+float64(dim)/2)*math.Log(float64(t)) + math.Log(math.Pi*math.Pi/0.01))
}

// objectives sets the rows of dst to the scores of the posteriors from describe.
func (m *mace) objectives(dst, from *mat.Dense) {
	rows, _ := from.Dims()
	for i := range rows {
		p := from.RawRowView(i)
		m.score(dst.RawRowView(i), p[0], p[1], p[2], p[3])
	}
}

// score sets dst to (LCB, −log EI, −log PI); smaller is better. It adds the noise of
// HEBO's robust acquisition, drawn anew at each call, to the mean and to the
// improvements.
func (m *mace) score(dst []float64, mean, variance, logP, prior float64) {
	sd := math.Sqrt(variance + m.noise)
	var bound, gain float64
	if m.robust > 0 {
		bound, gain = m.robust*m.rng.NormFloat64(), m.robust*m.rng.NormFloat64()
	}
	target := m.s.Main.Known.Incumbent - maceMargin
	c := m.s.Chance
	dst[0] = -c.OfReward(acquisition.LCB(mean+bound, sd, m.kappa), logP) - prior
	dst[1] = -c.OfImprovement(acquisition.LogEI(mean+gain, sd, target), logP) - prior
	dst[2] = -c.OfImprovement(acquisition.LogPI(mean+gain, sd, target), logP) - prior
}

// front searches for the ensemble's Pareto front and returns its last population as
// places that can be suggested. When ctx ends, it returns the population reached by
// then.
func (m *mace) front(ctx context.Context, e effort, initial *mat.Dense) ([]loop.Place, error) {
	population, err := m.s.evolve(ctx, nsga2.Problem{Objectives: 3, Score: m.objectives}, e, initial, m.robust > 0)
	if population == nil {
		return nil, err
	}
	return m.s.untaken(population, population.Front()), nil
}

// choose returns the index of the next member of a batch, and why it was chosen; picked
// members have been chosen before. In a batch of more than two, the first has the
// lowest mean and the second the greatest uncertainty. Otherwise it is a random point
// of the Pareto front.
func (m *mace) choose(mean, variance []float64, from, picked, batch int, available func(i int) bool) (index int, why string, ok bool) {
	best, least := -1, math.Inf(1)
	var scores [][]float64
	var rows []int
	for row := from; row < len(mean); row++ {
		if !available(row - from) {
			continue
		}
		var value float64
		switch {
		case batch > 2 && picked == 0:
			why = "the lowest mean of the Pareto front"
			value = -m.s.Chance.OfReward(-mean[row], m.s.LogP[row-from])
		case batch > 2 && picked == 1:
			why = "the greatest uncertainty of the Pareto front"
			value = -variance[row]
		default:
			score := make([]float64, 3)
			m.score(score, mean[row], variance[row], m.s.LogP[row-from], m.s.PriorTerms[row-from])
			scores, rows = append(scores, score), append(rows, row-from)
			continue
		}
		if value < least {
			best, least = row-from, value
		}
	}
	if len(rows) == 0 {
		return best, why, best >= 0
	}
	if m.s.front > 0 && m.s.options.Paper {
		return rows[m.rng.IntN(len(rows))], "one of the Pareto front, at random", true
	}
	var free []int
	for i, a := range scores {
		dominated := false
		for j, b := range scores {
			dominated = dominated || i != j && pareto.Dominates(b, a)
		}
		if !dominated {
			free = append(free, rows[i])
		}
	}
	return free[m.rng.IntN(len(free))], "one of the Pareto front, at random", true
}
