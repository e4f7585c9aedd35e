package pruner

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/study"
)

// MaxPoints bounds the points of a trial's curve that a pruner keeps. Of a longer curve
// it keeps every second, fourth, and so on, and the last.
const MaxPoints = 128

// history is what a pruner knows about a trial: its curve, and the rungs that it has reached.
type history struct {
	number           int
	points           []point
	reports, stride  int     // how many reports there were; every stride-th is kept
	least            float64 // the least finite cost so far
	ended, completed bool
	final            float64
	// rungs are the costs with which the trial reached the rungs of asha.
	rungs []float64
	// entered is how many of them the last report has reached.
	entered int
	// recent are the last costs, for patient, and before is the least cost before them.
	recent []float64
	before float64
	// copied are the points for the model; nil since the last report.
	copied []curves.Report
}

// point is a report.
type point struct {
	step int64
	// cost is +Inf if the trial has diverged: it reported NaN or an infinite value.
	cost float64
	// best is the least cost up to this step; +Inf if the trial has diverged at this step.
	best float64
}

// diverged reports whether the report was not finite, which is worse than any other.
func (p point) diverged() bool { return math.IsInf(p.cost, 1) }

// hasDiverged is the reason to stop a trial that has diverged.
func hasDiverged(p point) string {
	return fmt.Sprintf("its value at step %d is NaN or infinite", p.step)
}

// add adds a report, and returns false if its step is not beyond the last one. It thins a long
// curve to every second, fourth and so on report, and always keeps the last.
func (h *history) add(step int64, cost float64) bool {
	if len(h.points) == 0 {
		h.stride, h.least = 1, math.Inf(1)
	} else if step <= h.last().step {
		return false
	}
	h.copied = nil
	best := math.Inf(1)
	if !study.Finite(cost) {
		cost = best
	} else {
		h.least = min(h.least, cost)
		best = h.least
	}
	// The last point stays if it is a stride-th one; else it gives way.
	if h.reports > 0 && (h.reports-1)%h.stride != 0 {
		h.points = h.points[:len(h.points)-1]
	}
	h.points = append(h.points, point{step, cost, best})
	h.reports++
	if len(h.points) > MaxPoints {
		last, i := h.last(), 0
		h.points = slices.DeleteFunc(h.points, func(point) bool { i++; return i%2 == 0 })
		h.stride *= 2
		if h.last() != last {
			h.points = append(h.points, last)
		}
	}
	return true
}

// last returns the last point; there MUST be one.
func (h *history) last() point { return h.points[len(h.points)-1] }

// at returns the last point up to a step, and whether there is one.
func (h *history) at(step int64) (point, bool) {
	i := sort.Search(len(h.points), func(i int) bool { return h.points[i].step > step })
	if i == 0 {
		return point{}, false
	}
	return h.points[i-1], true
}
