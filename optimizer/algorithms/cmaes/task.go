package cmaes

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// task is a request with its columns sorted by the distribution that they belong to.
type task struct {
	r           *optimizer.Request
	options     Options
	numeric     []optimizer.Column
	numericAt   []int // the columns' numbers in the encoding
	categorical []int // likewise
	levels      []int // the numbers of choices
	discrete    int   // columns that are categorical or have levels
}

func newTask(r *optimizer.Request, o Options) *task {
	t := &task{r: r, options: o}
	for i, c := range r.Encoding.Columns() {
		if c.Levels > 0 {
			t.discrete++
		}
		if c.Unordered() {
			t.categorical = append(t.categorical, i)
			t.levels = append(t.levels, c.Levels)
			continue
		}
		t.numeric = append(t.numeric, c)
		t.numericAt = append(t.numericAt, i)
	}
	return t
}

// population returns the population of the first run.
func (t *task) population() int {
	if t.options.Population > 0 {
		return max(2, t.options.Population)
	}
	return populationOf(t.r.Encoding.Dim(), t.r.Parallelism)
}

// strategyOf returns the constants for a population. Without numeric columns only the
// weights are used.
func strategyOf(t *task, population int) strategy {
	return newStrategy(max(1, len(t.numeric)), population)
}

// begin returns the memory of a study that has not begun: the middle of the cube, or the
// parameters' priors.
func (t *task) begin() *memory {
	m := &memory{Version: memoryVersion, Population: t.population()}
	mean := slices.Repeat([]float64{0.5}, len(t.numeric))
	for i, c := range t.numeric {
		if centre, _, ok := c.Parameter.UnitPrior(); ok {
			mean[i] = centre
		}
	}
	t.start(m, mean, t.options.Sigma)
	return m
}

// start gives the memory new distributions.
func (t *task) start(m *memory, mean []float64, sigma float64) {
	m.Gaussian, m.Choices, m.Bests, m.Evaluations = nil, nil, nil, 0
	if len(t.numeric) > 0 {
		m.Gaussian = newGaussian(strategyOf(t, m.Population), mean, sigma)
		m.Gaussian.margin(t.numeric, t.margin(m))
	}
	if len(t.categorical) > 0 {
		var shares [][]float64
		for _, i := range t.categorical {
			c := t.r.Encoding.Columns()[i]
			list := slices.Repeat([]float64{1 / float64(c.Levels)}, c.Levels)
			if prior := c.Parameter.Prior; prior != nil && m.Run == 0 {
				list = study.Shares(prior.Weights)
			}
			shares = append(shares, list)
		}
		m.Choices = newChoices(shares, t.discrete)
		m.Choices.keepMargins()
	}
}

func (t *task) margin(m *memory) float64 {
	return 1 / float64(t.r.Encoding.Dim()*m.Population)
}

// result is a completed evaluation with the coordinates that belong to it.
type result struct {
	member
	chosen []int
}

// learn consumes the results that arrived: each population of them is a generation.
func (t *task) learn(m *memory) {
	drawn := make(map[int]draw, len(m.Drawn))
	for _, d := range m.Drawn {
		drawn[d.Trial] = d
	}
	for at := m.Consumed; at < len(t.r.Observations); {
		var generation []result
		for ; at < len(t.r.Observations) && len(generation) < m.Population; at++ {
			if one, ok := t.result(m, t.r.Observations[at], drawn); ok {
				generation = append(generation, one)
			}
		}
		if len(generation) < m.Population {
			break
		}
		m.Consumed = at
		t.generation(m, generation)
	}
	open := map[int]bool{}
	for _, p := range t.r.Pending {
		open[p.Trial] = true
	}
	for _, o := range t.r.Observations[min(m.Consumed, len(t.r.Observations)):] {
		open[o.Trial] = true
	}
	m.Drawn = slices.DeleteFunc(m.Drawn, func(d draw) bool { return !open[d.Trial] })
}

// result returns an observation as a member of the present generation. ok is false if it
// failed, or was drawn by a run that has ended: good points from there would pull the
// present run back.
func (t *task) result(m *memory, o optimizer.Observation, drawn map[int]draw) (one result, ok bool) {
	if o.Outcome != optimizer.OutcomeCompleted {
		return one, false
	}
	d, known := drawn[o.Trial]
	if known && d.Run != m.Run {
		return one, false
	}
	point := o.At()
	x := t.r.Encoding.Encode(point)
	one.value = t.r.Direction.Cost(o.Values.First())
	one.foreign = true
	if known && t.matches(d.At, x, point) {
		one.at, one.foreign = d.At, d.Generation != m.Generation
	} else {
		for k, i := range t.numericAt {
			if active(t.numeric[k], point) {
				one.at = append(one.at, x[i])
			} else {
				one.at = append(one.at, m.Gaussian.Mean[k])
			}
		}
	}
	for _, i := range t.categorical {
		choice := -1
		if c := t.r.Encoding.Columns()[i]; active(c, point) {
			choice = c.Level(x[i])
		}
		one.chosen = append(one.chosen, choice)
	}
	return one, true
}

// active reports whether a point has a value for the column's parameter.
func active(c optimizer.Column, p study.Point) bool {
	_, ok := p[c.Parameter.Name]
	return ok
}

// matches reports whether the coordinates at decode to the point at x.
func (t *task) matches(at, x []float64, p study.Point) bool {
	for k, i := range t.numericAt {
		c := t.numeric[k]
		if !active(c, p) {
			continue
		}
		if c.Parameter.ToUnit(c.Parameter.FromUnit(at[k])) != x[i] {
			return false
		}
	}
	return true
}

// generation moves the distributions, and starts another run if this one has converged.
func (t *task) generation(m *memory, results []result) {
	slices.SortStableFunc(results, func(a, b result) int { return cmp.Compare(a.value, b.value) })
	m.Generation++
	m.Evaluations += len(results)
	s := strategyOf(t, m.Population)
	if m.Gaussian != nil {
		members := make([]member, len(results))
		for i, one := range results {
			members[i] = one.member
		}
		m.Gaussian.update(s, members)
		m.Gaussian.margin(t.numeric, t.margin(m))
	}
	if m.Choices != nil {
		var parents [][]int
		for _, one := range results[:s.parents] {
			parents = append(parents, one.chosen)
		}
		m.Choices.update(s, parents)
	}
	history := 10 + int(math.Ceil(30*float64(t.r.Encoding.Dim())/float64(m.Population)))
	m.Bests = append(m.Bests, results[0].value)
	if len(m.Bests) > history {
		m.Bests = m.Bests[1:]
	}
	if t.converged(m, len(m.Bests) == history) {
		t.restart(m)
	}
}

// The signs of convergence: the distribution is narrower than leastWidth of every
// continuous parameter's range, too narrow in one direction (as an eigenvalue's ratio to
// the largest), or the best values of many generations are equal.
const (
	leastWidth   = 1e-7
	worstRatio   = 1e14
	flatRelative = 1e-12
)

// converged reports whether the run should end; whole says that enough generations were
// recorded to judge their best values.
func (t *task) converged(m *memory, whole bool) bool {
	if low, high := slices.Min(m.Bests), slices.Max(m.Bests); whole && high-low <= flatRelative*max(1, math.Abs(high)) {
		return true
	}
	g := m.Gaussian
	if g == nil {
		return false
	}
	if !g.valid(strategyOf(t, m.Population)) {
		return true
	}
	widest, continuous := 0.0, false
	for i, c := range t.numeric {
		if c.Levels == 0 {
			continuous = true
			widest = max(widest, g.Sigma*math.Sqrt(max(0, g.variance(i))))
		}
	}
	d := g.spectrum().d
	ratio := slices.Max(d) / slices.Min(d)
	return continuous && widest < leastWidth || ratio*ratio > worstRatio
}

// note explains a draw in a few words.
func (d *drawer) note() string {
	return fmt.Sprintf("drawn from the distribution of generation %d, run %d", d.m.Generation+1, d.m.Run+1)
}
