// Package transfer carries what earlier studies found to a model of a new one. Each earlier
// study s of S becomes a function m_s of a point: the mean of a Gaussian process with a Matérn-5/2
// kernel that was fitted once, by its posterior mode, to the normal scores of its outcomes. With
// them, the model of the new study's outcomes has the kernel and the prior mean
//
//	k(x, y) + v·Σ_s m_s(x)·m_s(y),   b·Σ_s m_s(x),   v = 0.5/S,   b = 0.8/S
//
// That is a Gaussian process with explicit basis functions, whose weights are independent and
// normal (Rasmussen and Williams, equations 2.39 to 2.42; kernel.NewFeatures). The study's own
// observations then decide how much each function counts, and with which sign: the prior is wide,
// since a study that misleads must be able to count for nothing or against itself.
//
// The times or costs of earlier studies are functions of the same kind (ReadEfforts, with
// b = 1/S). They say which points take longer, and not how long: another machine may be faster.
package transfer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// MaxPoints is how many points of an earlier study its model learns from, at most.
	MaxPoints = 128
	// minPoints is how many it needs.
	minPoints = study.MinEarlierTrials
	// unseen is the coordinate of a parameter that an earlier study did not have.
	unseen = 0.5
)

// Source is the model of an earlier study. It is immutable and safe for concurrent use.
type Source struct {
	// Name is the earlier study's.
	Name string

	best  [][]float64 // the places of its best points, the best first
	model *gp.Model
	seen  []bool  // the columns that it had
	unit  float64 // the function is the model's mean times this
}

// Sources are the functions that stand for earlier studies. They implement kernel.Features.
type Sources []*Source

// Read returns the models of the problem's earlier studies, without those of which too few points
// have a place in the encoding; nil if none is left. fitted are the hyperparameters that an earlier
// call has returned, nil at first: with them nothing is searched for. The error is ctx's, or wraps
// linalg.ErrNotPositiveDefinite.
func Read(
	ctx context.Context, p *optimizer.Problem, encoding *optimizer.Encoding, fitted []gp.Hyperparameters,
) (Sources, []gp.Hyperparameters, error) {
	var sources Sources
	var hyper []gp.Hyperparameters
	for i := range p.Earlier {
		s, x, y := ranked(&p.Earlier[i], encoding)
		if s == nil {
			continue
		}
		var warm *gp.Hyperparameters
		if len(sources) < len(fitted) {
			warm = &fitted[len(sources)]
		}
		k := kernel.NewMatern52(columns(encoding))
		if err := s.fit(ctx, k, x, y, gp.DefaultConfig(k.Dim()), warm, optimizer.NewRand(p.Seed, i)); err != nil {
			return nil, nil, fmt.Errorf("model the earlier study %s: %w", s.Name, err)
		}
		sources, hyper = append(sources, s), append(hyper, s.model.Hyperparameters())
	}
	return sources, hyper, nil
}

// fit conditions the source's model on the outcomes y at the rows of x. It searches for
// hyperparameters if fitted is nil or of another kernel.
func (s *Source) fit(
	ctx context.Context, k *kernel.Kernel, x *mat.Dense, y []float64, config gp.Config, fitted *gp.Hyperparameters, rng *rand.Rand,
) error {
	if fitted != nil && len(fitted.Kernel) == k.NumParams() {
		model, err := gp.Condition(k, *fitted, x, y)
		s.model = model
		return err
	}
	result, err := gp.Fit(ctx, k, x, y, config, rng)
	if err != nil {
		return err
	}
	s.model = result.Model
	return nil
}

// columns returns how a source's kernel sees the encoding. It snaps nothing: points of another
// study may lie between the steps of this one's parameters, and beyond their ranges.
func columns(encoding *optimizer.Encoding) []kernel.Column {
	out := make([]kernel.Column, encoding.Dim())
	for i, c := range encoding.Columns() {
		out[i].Categorical = c.Categorical()
	}
	return out
}

// place returns the source of an earlier study without its model, the places of its points and their outcomes, one of each point, without
// those that are NaN. The source is nil if too few points have a place.
func place(e *optimizer.Earlier, encoding *optimizer.Encoding, of []float64) (s *Source, rows [][]float64, outcomes []float64) {
	seen := make([]bool, encoding.Dim())
	for i, point := range e.Points {
		row, ok := make([]float64, encoding.Dim()), true
		for c, column := range encoding.Columns() {
			row[c] = unseen
			value, has := point[column.Parameter.Name]
			if !has {
				continue
			}
			if row[c], has = column.Parameter.Coordinate(value); !has {
				ok = false // a value that this study has not: where the point lies is not known
				break
			}
			seen[c] = true
		}
		if ok && !math.IsNaN(of[i]) {
			rows, outcomes = append(rows, row), append(outcomes, of[i])
		}
	}
	if len(rows) < minPoints || !slices.Contains(seen, true) {
		return nil, nil, nil
	}
	return &Source{Name: e.Name, seen: seen, unit: 1}, rows, outcomes
}

// ranked returns the source of an earlier study as place does, the places of at most MaxPoints of its points, and the normal
// scores of their outcomes.
func ranked(e *optimizer.Earlier, encoding *optimizer.Encoding) (s *Source, x *mat.Dense, y []float64) {
	s, rows, costs := place(e, encoding, e.Costs)
	if s == nil {
		return nil, nil, nil
	}
	order := make([]int, len(costs))
	floats.ArgsortStable(slices.Clone(costs), order)
	order = thin(order, MaxPoints)
	x, y = mat.NewDense(len(order), encoding.Dim(), nil), make([]float64, len(order))
	for k, i := range order {
		x.SetRow(k, rows[i])
		y[k] = costs[i]
	}
	scores(y)
	for _, i := range order[:min(bestPoints, len(order))] {
		s.best = append(s.best, rows[i])
	}
	return s, x, y
}

// bestPoints is how many of a source's best points are tried as first points.
const bestPoints = 5

// thin returns the first half of most elements, and an even share of those behind them, so that there are
// at most most in all.
func thin(order []int, most int) []int {
	if len(order) <= most {
		return order
	}
	out, rest := slices.Clone(order[:most/2]), order[most/2:]
	left := most - len(out)
	for k := range left {
		out = append(out, rest[k*len(rest)/left])
	}
	return out
}

// scores replaces ascending values by their normal scores: Φ⁻¹((r − ½)/n) for the r-th of n. Equal
// values share the mean of their ranks.
func scores(y []float64) {
	n := float64(len(y))
	for from := 0; from < len(y); {
		to := from
		for to < len(y) && y[to] == y[from] {
			to++
		}
		score := distuv.UnitNormal.Quantile(float64(from+to) / 2 / n)
		for ; from < to; from++ {
			y[from] = score
		}
	}
}

// Len implements kernel.Features.
func (all Sources) Len() int { return len(all) }

// Values implements kernel.Features: the sources' means, in standard deviations of their ranks, where lower is
// better, or of their logarithms.
func (all Sources) Values(x *mat.Dense) *mat.Dense {
	n, _ := x.Dims()
	out := mat.NewDense(n, len(all), nil)
	for s, source := range all {
		values := source.model.Mean(source.known(x))
		floats.Scale(source.unit, values)
		out.SetCol(s, values)
	}
	return out
}

// Slopes implements kernel.Features.
func (all Sources) Slopes(x *mat.Dense) []*mat.Dense {
	n, _ := x.Dims()
	out := make([]*mat.Dense, len(all))
	for s, source := range all {
		out[s] = source.model.MeanSlopes(source.known(x))
		out[s].Scale(source.unit, out[s])
		for c, seen := range source.seen {
			for i := range n {
				if !seen {
					out[s].Set(i, c, 0)
				}
			}
		}
	}
	return out
}

// known returns the rows of x as the source knows them: its mean does not depend on parameters that
// it did not have.
func (s *Source) known(x *mat.Dense) *mat.Dense {
	if !slices.Contains(s.seen, false) {
		return x
	}
	out := mat.DenseCopyOf(x)
	n, _ := x.Dims()
	for c, seen := range s.seen {
		for i := range n {
			if !seen {
				out.Set(i, c, unseen)
			}
		}
	}
	return out
}

// Best returns the places of the sources' best points, which may be outside of the unit cube.
func (all Sources) Best() (places [][]float64) {
	for _, s := range all {
		places = append(places, s.best...)
	}
	return places
}

// Kernel returns the kernel of the sources' weighted sum over the columns. The weights are expected to add
// up to expected; their variance lets each of them be negative.
func (all Sources) Kernel(columns []kernel.Column) *kernel.Kernel {
	count := float64(len(all))
	return kernel.NewFeatures(columns, all, expected/count, spread/count)
}

// The prior of the weights: all sources together predict the new study nearly as well as themselves,
// but may as well mislead.
const (
	expected = 0.8
	spread   = 0.5
)

// First returns which of the candidates, the rows of x, is best to begin with, beside points that the
// study has already, the rows of known; known may be nil. It is the one that most lowers the mean, over the
// sources, of the least share of candidates that are better than any of these points: a greedy portfolio, in
// which a source that is served by another point counts no more. from names the sources that rank that
// candidate highest: the first of them, and those by whom at most a tenth more of the candidates are better.
//
// If longer is not nil, it is by how much the logarithm of each candidate's time is above that of others. Of the candidates that are
// nearly as good, the one is taken with the least product of that time and the share of better candidates: by luck alone, it takes
// about the inverse of that share to find one as good.
func (all Sources) First(x, known *mat.Dense, longer []float64) (best int, from []string) {
	values := all.Values(x)
	n, _ := values.Dims()
	total, rank := make([]float64, n), make([]float64, n)
	shares := mat.NewDense(len(all), n, nil)
	for s := range all {
		column := mat.Col(nil, s, values)
		sorted := slices.Clone(column)
		slices.Sort(sorted)
		share := func(v float64) float64 {
			below, _ := slices.BinarySearch(sorted, v)
			return float64(below) / float64(n)
		}
		least := 1.0
		if known != nil {
			least = share(mat.Min(all[s : s+1].Values(known)))
		}
		for i, v := range column {
			shares.Set(s, i, share(v))
			total[i] += min(least, shares.At(s, i))
			rank[i] += shares.At(s, i)
		}
	}
	// Where all sources are served, the best of all.
	for i := range total {
		if total[i] < total[best] || total[i] == total[best] && rank[i] < rank[best] {
			best = i
		}
	}
	if longer != nil {
		best = all.sooner(best, total, rank, longer)
	}
	of := mat.Col(nil, best, shares)
	for s, share := range of {
		if share <= floats.Min(of)+alike {
			from = append(from, all[s].Name)
		}
	}
	return best, from
}

// alike is the share of candidates by which two sources rank a first point alike.
const alike = 0.1

// nearlyAsGood is how many more of the candidates may be better than a first point that takes less time.
const nearlyAsGood = 0.03

// sooner returns the candidate that is evaluated in place of the best one: a quicker one, or the best one itself.
func (all Sources) sooner(best int, total, rank, longer []float64) int {
	count, n := float64(len(all)), float64(len(total))
	mostTotal, mostRank := total[best]+nearlyAsGood*count, rank[best]+nearlyAsGood*count
	least := math.Inf(1)
	for i := range total {
		if total[i] <= mostTotal && rank[i] <= mostRank {
			if v := math.Log((total[i]+rank[i])/2/count+1/n) + longer[i]; v < least {
				best, least = i, v
			}
		}
	}
	return best
}
