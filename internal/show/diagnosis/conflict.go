package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
	"github.com/fantasia-hpo/fantasia/study"
)

// Conflict describes how far the acquisition functions agree about which points of
// the space to evaluate next.
type Conflict struct {
	// Points is how many points of the space they are compared at.
	Points int    `json:"points"`
	Pairs  []Pair `json:"pairs"`
	// Front is the number of Pareto-optimal points: no other point is better by all
	// the functions. It is 1 where the functions agree about the best point.
	Front int `json:"front"`
	// Dominated is, by function, the share of its best twentieth of the points that
	// are not Pareto-optimal: another point is better by all the functions.
	Dominated map[string]float64 `json:"dominated"`
}

// Pair is a comparison of two acquisition functions.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
	// Spearman and Kendall are the rank correlations ρ and τ-b over all points.
	Spearman float64 `json:"spearman"`
	Kendall  float64 `json:"kendall"`
	// Top is the share of A's best twentieth that is in B's.
	Top float64 `json:"top"`
	// Rank is the place, from 1 for the best, that A's best point has by B.
	Rank int `json:"rank"`
}

// topShare is the part of all points that count as an acquisition function's best.
const topShare = 0.05

// minPoints is the least number of points whose best twentieth holds five: with
// fewer, the shared part of the best is a matter of one or two points.
const minPoints = 81

// criterion is an acquisition function's values at points, larger being better.
type criterion struct {
	name   string
	values []float64
	order  []int // of the points, best first
	place  []int // of each point in order
}

// conflict compares expected improvement, probability of improvement and upper
// confidence bound as the optimiser would see them for its next point. The error
// says why they cannot be compared.
func (e *examination) conflict() (*Conflict, error) {
	if n, _ := e.places.Dims(); n < minPoints {
		return nil, fmt.Errorf("this needs a space of at least %d points, this one has %d", minPoints, n)
	}
	if e.explained() < usefulModel {
		return nil, errWeakModel
	}
	criteria := e.criteria()
	n := len(criteria[0].values)
	c := &Conflict{Points: n, Dominated: map[string]float64{}}
	for i, a := range criteria {
		for _, b := range criteria[i+1:] {
			pair := Pair{A: a.name, B: b.name, Rank: b.place[a.order[0]] + 1}
			pair.Spearman = diagnose.Spearman(a.values, b.values)
			pair.Kendall = diagnose.Kendall(a.values, b.values)
			pair.Top = a.shared(b)
			if !study.Finite(pair.Spearman, pair.Kendall) {
				return nil, errors.New("an acquisition function is constant over the space")
			}
			c.Pairs = append(c.Pairs, pair)
		}
	}
	dominated := make([]bool, n)
	for i := range dominated {
		if dominated[i] = isDominated(criteria, i); !dominated[i] {
			c.Front++
		}
	}
	for _, a := range criteria {
		top := a.top()
		for _, i := range top {
			if dominated[i] {
				c.Dominated[a.name] += 1 / float64(len(top))
			}
		}
	}
	return c, nil
}

// criteria returns the acquisition functions at the surveyed places.
func (e *examination) criteria() []criterion {
	m := e.used
	mean, variance := m.GP.Posterior(e.places)
	// The best posterior mean and not the best value, which noise may have made lucky.
	incumbent := slices.Min(m.GP.Mean(m.Data.X)) - improvement
	_, dim := e.places.Dims()
	weight := kappa(len(m.Data.Y), e.problem.Parallelism, dim)
	criteria := []criterion{{name: "EI"}, {name: "PI"}, {name: "UCB"}}
	for i, v := range variance {
		sd := math.Sqrt(v)
		for k, value := range []float64{
			acquisition.LogEI(mean[i], sd, incumbent), acquisition.LogPI(mean[i], sd, incumbent), acquisition.LCB(mean[i], sd, weight),
		} {
			criteria[k].values = append(criteria[k].values, value)
		}
	}
	for k := range criteria {
		criteria[k].rank()
	}
	return criteria
}

// improvement is the least improvement that EI and PI count, in standard deviations
// of the outcomes: HEBO's ε.
const improvement = 1e-4

// kappa is HEBO's weight of the standard deviation in the upper confidence bound
// after n evaluations, q at once, of d parameters: that of GP-UCB (Srinivas et al. 2010) with δ = 0.01, in
// the form of HEBO's reference implementation, √(υ·2·((2 + d/2)·log t + log(3π²/(3δ)))) with υ = ½. t
// counts rounds of q and not evaluations, since the model is fitted once a round there.
func kappa(n, q, d int) float64 {
	t := max(1, n/max(1, q))
	return math.Sqrt((2+float64(d)/2)*math.Log(float64(t)) + math.Log(math.Pi*math.Pi/0.01))
}

// rank sets order and place.
func (c *criterion) rank() {
	c.order, c.place = make([]int, len(c.values)), make([]int, len(c.values))
	for i := range c.order {
		c.order[i] = i
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(c.values[b], c.values[a]) })
	for place, i := range c.order {
		c.place[i] = place
	}
}

// top returns the best points.
func (c *criterion) top() []int {
	return c.order[:int(math.Ceil(topShare*float64(len(c.order))))]
}

// shared returns the share of the best points that are among another's.
func (c *criterion) shared(other criterion) float64 {
	top, both := c.top(), 0
	for _, i := range top {
		if other.place[i] < len(top) {
			both++
		}
	}
	return float64(both) / float64(len(top))
}

// isDominated reports whether another point is at least as good as the i-th by all
// criteria and better by one.
func isDominated(criteria []criterion, i int) bool {
	for j := range criteria[0].values {
		better, worse := false, false
		for _, c := range criteria {
			better = better || c.values[j] > c.values[i]
			worse = worse || c.values[j] < c.values[i]
		}
		if better && !worse {
			return true
		}
	}
	return false
}
