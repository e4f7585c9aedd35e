package nsga2

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// ranking sorts points into fronts and computes their crowding. Everything has room for a
// fixed number of points.
type ranking struct {
	objectives int
	rank       []int
	crowding   []float64
	count      []int     // of the points in each front
	order      []int     // of the points by one objective
	extent     []float64 // of each front in an objective
	last       []int     // of each front: the point met last, and the one before it
	previous   []int
}

func newRanking(points, objectives int) *ranking {
	return &ranking{
		objectives: objectives,
		rank:       make([]int, points), crowding: make([]float64, points), count: make([]int, points), order: make([]int, points),
		extent: make([]float64, points), last: make([]int, points), previous: make([]int, points),
	}
}

// sort sets rank and crowding of n points with the objectives f, one point a
// row, and returns the number of fronts.
func (r *ranking) sort(f []float64, n int) int {
	fronts := r.assign(f, n)
	clear(r.crowding[:n])
	for k := range r.objectives {
		r.crowd(f, k, n, fronts)
	}
	return fronts
}

// by returns the points in the order of objective k. Ties are broken by the next
// objectives, so that the first order is lexicographic.
func (r *ranking) by(f []float64, k, n int) []int {
	m, order := r.objectives, r.order[:n]
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		for x, y := a*m+k, b*m+k; x < a*m+m; x, y = x+1, y+1 {
			switch {
			case f[x] < f[y]:
				return -1
			case f[x] > f[y]:
				return 1
			}
		}
		return a - b
	})
	return order
}

// assign gives each point the first front behind all points that dominate it. These
// come before it in lexicographic order.
func (r *ranking) assign(f []float64, n int) (fronts int) {
	m, order := r.objectives, r.by(f, 0, n)
	for at, i := range order {
		front := 0
		for k := at - 1; k >= 0; k-- { // the last ones have the highest ranks
			j := order[k]
			if r.rank[j] >= front && pareto.Dominates(f[j*m:j*m+m], f[i*m:i*m+m]) {
				front = r.rank[j] + 1
			}
		}
		if front == fronts {
			r.count[front] = 0
			fronts++
		}
		r.rank[i] = front
		r.count[front]++
	}
	return fronts
}

// crowd adds objective k's share to the crowding distances: the distance between a
// point's neighbours in its front, divided by the front's extent; +Inf for the ends
// (Deb et al. 2002, section III-B). One pass through the objective's order visits the
// points of all fronts in order.
func (r *ranking) crowd(f []float64, k, n, fronts int) {
	m, order := r.objectives, r.by(f, k, n)
	for i := range fronts {
		r.last[i], r.previous[i] = -1, -1
	}
	for _, i := range order { // last is the first point of the front here
		front := r.rank[i]
		if r.last[front] < 0 {
			r.last[front] = i
		}
		r.extent[front] = f[i*m+k] - f[r.last[front]*m+k]
	}
	for i := range fronts {
		r.last[i] = -1
	}
	for _, i := range order {
		front := r.rank[i]
		j, before := r.last[front], r.previous[front]
		switch {
		case j < 0:
			r.crowding[i] = math.Inf(1)
		case before >= 0 && r.extent[front] > 0:
			r.crowding[j] += (f[i*m+k] - f[before*m+k]) / r.extent[front]
		}
		r.previous[front], r.last[front] = j, i
	}
	for _, i := range r.last[:fronts] {
		r.crowding[i] = math.Inf(1)
	}
}
