package nsga2

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

const (
	// tries is the number of points made for each wanted one before the search makes do
	// with what it found; the others were duplicates or infeasible.
	tries = 20
	// worst replaces infinite objectives and NaN, so that differences do not overflow.
	worst = math.MaxFloat64 / 4
)

// table is a matrix, some of whose rows survive.
type table struct {
	columns    int
	data, next []float64 // next is what the survivors are copied to
	view       mat.Dense // of some rows, for the problem's functions
}

func newTable(rows, columns int) table {
	return table{columns: columns, data: make([]float64, rows*columns), next: make([]float64, rows*columns)}
}

func (t *table) row(i int) []float64 { return t.data[i*t.columns : (i+1)*t.columns] }

// rows returns a view of rows from…to−1, valid until the next call.
func (t *table) rows(from, to int) *mat.Dense {
	t.view.SetRawMatrix(blas64.General{
		Rows: to - from, Cols: t.columns, Stride: t.columns, Data: t.data[from*t.columns : to*t.columns],
	})
	return &t.view
}

// keep reduces the table to some of its rows.
func (t *table) keep(rows []int) {
	for to, from := range rows {
		copy(t.next[to*t.columns:(to+1)*t.columns], t.row(from))
	}
	t.data, t.next = t.next, t.data
}

// clone returns a copy of the first n rows.
func (t *table) clone(n int) *mat.Dense {
	return mat.NewDense(n, t.columns, slices.Clone(t.data[:n*t.columns]))
}

// search is the state and the memory of one search. The first size rows of x and f are
// the population; the rows behind them, up to twice the options' Population, are the
// children.
type search struct {
	problem   Problem
	options   Options
	rng       *rand.Rand
	variation variation
	ranking   *ranking
	size      int

	x, f, features table
	rank           []int // of the population
	crowding       []float64
	survivors      []int
	split          []int // the front that does not fit
	parents        []int // the population's rows, shuffled
	turn           int   // in parents
	spare          []float64
}

func newSearch(p Problem, o Options, rng *rand.Rand) *search {
	d, rows := len(p.Variables), 2*o.Population
	return &search{
		problem: p, options: o, rng: rng,
		variation: variation{p.Variables, rng, crossoverIndex, mutationIndex, 1 / float64(d)},
		ranking:   newRanking(rows, p.Objectives),
		x:         newTable(rows, d), f: newTable(rows, p.Objectives), features: newTable(rows, p.Features),
		rank: make([]int, o.Population), crowding: make([]float64, o.Population),
		survivors: make([]int, 0, rows), split: make([]int, 0, rows), parents: make([]int, 0, o.Population), spare: make([]float64, d),
	}
}

// begin makes and ranks the first population.
func (s *search) begin() error {
	n := 0
	if initial := s.options.Initial; initial != nil && !initial.IsEmpty() {
		rows, _ := initial.Dims()
		for i := 0; i < rows && n < s.options.Population; i++ {
			copy(s.x.row(n), initial.RawRowView(i))
			if s.accept(n) {
				n++
			}
		}
	}
	n = s.fill(n, s.options.Population)
	if n == 0 {
		return fmt.Errorf("%w in %d draws", ErrInfeasible, tries*s.options.Population)
	}
	s.evaluate(0, 0, n)
	s.survive(n)
	return nil
}

// step makes another generation; it returns false if no new point was found.
func (s *search) step() bool {
	n := s.breed()
	if n == s.size {
		return false
	}
	from := s.size
	if s.options.Reevaluate {
		from = 0
	}
	s.evaluate(from, s.size, n)
	s.survive(n)
	return true
}

// fill adds random points from row n up to row end, and returns the resulting number of
// rows.
func (s *search) fill(n, end int) int {
	for tried := 0; n < end && tried < tries*s.options.Population; tried++ {
		for i := range s.x.columns {
			s.x.row(n)[i] = s.rng.Float64()
		}
		if s.accept(n) {
			n++
		}
	}
	return n
}

// breed adds a population's worth of children behind the population, with random points
// if the parents produce no new ones, and returns the resulting number of rows.
func (s *search) breed() int {
	n, end := s.size, s.size+s.options.Population
	s.turn = len(s.parents)
	for tried := 0; n < end && tried < tries*s.options.Population; tried += 2 {
		s.variation.cross(s.x.row(s.tournament()), s.x.row(s.tournament()), s.x.row(n), s.spare)
		s.variation.mutate(s.x.row(n))
		s.variation.mutate(s.spare)
		if s.accept(n) {
			n++
		}
		if n < end {
			copy(s.x.row(n), s.spare)
			if s.accept(n) {
				n++
			}
		}
	}
	return s.fill(n, end)
}

// accept adds row n and reports whether it is feasible and new.
func (s *search) accept(n int) bool {
	x := s.x.row(n)
	for i, v := range s.problem.Variables {
		x[i] = unit(x[i])
		if v.Levels > 0 && (v.Categorical || s.problem.Repair == nil) {
			x[i] = unitOfLevel(levelOf(x[i], v.Levels), v.Levels)
		}
	}
	if s.problem.Repair != nil && !s.problem.Repair(x) {
		return false
	}
	for i := range n {
		if slices.Equal(s.x.row(i), x) {
			return false
		}
	}
	return true
}

// tournament returns the better of two members: the one that dominates, otherwise the
// less crowded. All members take part before one does again. Deb's program and pymoo
// compare the same way; by front instead of dominance, as in the paper, the search
// converges on an end of ZDT2's front before it has found the rest.
func (s *search) tournament() int {
	if s.size == 1 {
		return 0
	}
	if s.turn+2 > len(s.parents) {
		s.parents = s.parents[:s.size]
		for i := range s.parents {
			s.parents[i] = i
		}
		s.rng.Shuffle(s.size, func(i, j int) { s.parents[i], s.parents[j] = s.parents[j], s.parents[i] })
		s.turn = 0
	}
	a, b := s.parents[s.turn], s.parents[s.turn+1]
	s.turn += 2
	if pareto.Dominates(s.f.row(b), s.f.row(a)) || !pareto.Dominates(s.f.row(a), s.f.row(b)) && s.crowding[b] > s.crowding[a] {
		return b
	}
	return a
}

// evaluate sets the objectives of rows from…to−1, where rows from born on are new
// points.
func (s *search) evaluate(from, born, to int) {
	s.problem.Describe(s.features.rows(born, to), s.x.rows(born, to))
	s.problem.Score(s.f.rows(from, to), s.features.rows(from, to))
	bound(s.f.data[from*s.f.columns : to*s.f.columns])
}

// bound replaces NaN by the worst value, and infinities by large numbers.
func bound(objectives []float64) {
	for i, v := range objectives {
		if math.IsNaN(v) {
			v = worst
		}
		objectives[i] = min(max(v, -worst), worst)
	}
}

// survive ranks n rows and keeps the best as the population: whole fronts, and the
// least crowded members of the front that does not fit.
func (s *search) survive(n int) {
	s.ranking.sort(s.f.data, n)
	rank, crowding := s.ranking.rank, s.ranking.crowding
	s.size = min(n, s.options.Population)
	split, left := 0, s.size
	for ; split < n && s.ranking.count[split] <= left && left > 0; split++ {
		left -= s.ranking.count[split]
	}
	chosen, rest := s.survivors[:0], s.split[:0]
	for i := range n {
		if rank[i] < split {
			chosen = append(chosen, i)
		} else if rank[i] == split && left > 0 {
			rest = append(rest, i)
		}
	}
	slices.SortFunc(rest, func(a, b int) int {
		if c := cmp.Compare(crowding[b], crowding[a]); c != 0 {
			return c
		}
		return a - b
	})
	chosen = append(chosen, rest[:left]...)
	for to, from := range chosen {
		s.rank[to], s.crowding[to] = rank[from], crowding[from]
	}
	s.x.keep(chosen)
	s.f.keep(chosen)
	s.features.keep(chosen)
}

// population returns a copy of the population.
func (s *search) population() *Population {
	return &Population{
		X: s.x.clone(s.size), F: s.f.clone(s.size),
		Rank: slices.Clone(s.rank[:s.size]), Crowding: slices.Clone(s.crowding[:s.size]),
	}
}
