package curves

import (
	"cmp"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
)

// Report is a cost that a trial reported at a step, counted from 1. Lower is better. A cost that
// is not finite says that the trial has diverged.
type Report struct {
	Step int64
	Cost float64
}

// Curve is what is known of a trial. A trial may have no reports yet.
type Curve struct {
	// X is the trial's configuration in the unit cube.
	X []float64
	// Reports are in the order of their steps, each of which occurs once.
	Reports []Report
	// Runs reports whether the trial is being evaluated.
	Runs bool
}

// The steps at which curves are read and trials are compared: the first after a share of all
// steps, each further one by a factor later. Before the first most curves look alike.
const (
	firstShare = 12
	factor     = 1.2
)

// Grid returns the steps at which a trial of last steps, at least 1, is looked at, last among
// them. They grow.
func Grid(last int64) []int64 {
	var grid []int64
	for at := float64(last) / firstShare; at < float64(last); at *= factor {
		if step := max(1, int64(math.Round(at))); step < last && (grid == nil || step > grid[len(grid)-1]) {
			grid = append(grid, step)
		}
	}
	return append(grid, last)
}

// point is one of the observations of a model: the best cost of a trial up to a step.
type point struct {
	trial int // index of the curve
	step  int64
	cost  float64 // +Inf if the trial diverged before it reported any cost
}

// points returns the curves' best costs at the steps of the grid, those of one curve after
// another. Each curve ends with its last report. If they are more than most, only the best
// eighth of the curves and those that run have all of theirs, and the others their last one.
func points(curves []Curve, grid []int64, most int) []point {
	var all []point
	ends := make([]float64, len(curves)) // the best cost of each
	for i := range curves {
		before := len(all)
		all = append(all, curves[i].points(i, grid)...)
		ends[i] = math.Inf(1)
		if len(all) > before {
			ends[i] = all[len(all)-1].cost
		}
	}
	if len(all) <= most {
		return all
	}
	order := indices.Sorted(len(curves), func(a, b int) int { return cmp.Compare(ends[a], ends[b]) })
	whole := map[int]bool{}
	for _, i := range order[:(len(order)+7)/8] {
		whole[i] = true
	}
	kept := all[:0]
	for i, p := range all {
		if final := i+1 == len(all) || all[i+1].trial != p.trial; final || whole[p.trial] || curves[p.trial].Runs {
			kept = append(kept, p)
		}
	}
	return kept
}

// points returns those of one curve.
func (c *Curve) points(trial int, grid []int64) (list []point) {
	best, next := math.Inf(1), 0
	for i, r := range c.Reports {
		if !math.IsNaN(r.Cost) {
			best = min(best, r.Cost)
		}
		// A report counts at the last step of the grid that it reaches before the next report does.
		reached := next
		for next < len(grid) && grid[next] <= r.Step {
			next++
		}
		if next > reached || i == len(c.Reports)-1 {
			list = append(list, point{trial, r.Step, best})
		}
	}
	return list
}
