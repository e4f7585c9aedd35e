package nsga2

import (
	"math"
	"math/bits"
	"slices"
)

const wordBits = bits.UintSize

// ranking sorts points into fronts and computes their crowding without allocating:
// everything has room for a fixed number of points.
type ranking struct {
	objectives int
	words      int // of a set of points
	rank       []int
	crowding   []float64
	count      []int   // of the points in each front
	order      [][]int // of the points by each objective
	dominators []uint  // a set for each point: those at least as good in all objectives
	fronts     []uint  // a set for each front
	running    []uint
	keys       []key // room for a sort
	scratch    []key
	extent     []float64 // of each front in an objective
	last       []int     // of each front: the point met last, and the one before it
	previous   []int
}

func newRanking(points, objectives int) *ranking {
	words := (points + wordBits - 1) / wordBits
	r := &ranking{
		objectives: objectives, words: words,
		rank: make([]int, points), crowding: make([]float64, points), count: make([]int, points),
		dominators: make([]uint, points*words), fronts: make([]uint, points*words), running: make([]uint, words),
		keys: make([]key, points), scratch: make([]key, points),
		extent: make([]float64, points), last: make([]int, points), previous: make([]int, points),
	}
	for range objectives {
		r.order = append(r.order, make([]int, points))
	}
	return r
}

// sort sets rank and crowding of n points with the objectives f, one point a
// row, and returns the number of fronts.
func (r *ranking) sort(f []float64, n int) int {
	r.sortObjectives(f, n)
	r.collectDominators(f, n)
	fronts := r.assign(f, n)
	r.crowd(f, n, fronts)
	return fronts
}

// sortObjectives orders the points by each objective, breaking ties by the next one.
// The first order is lexicographic, so every point comes after its dominators.
func (r *ranking) sortObjectives(f []float64, n int) {
	m := r.objectives
	keys, scratch := r.keys[:n], r.scratch[:n]
	for i := range keys {
		keys[i].row = int32(i)
	}
	for k := m - 1; k >= 0; k-- {
		for i := range keys {
			keys[i].value = f[int(keys[i].row)*m+k]
		}
		keys, scratch = mergeSort(keys, scratch)
		for at, key := range keys {
			r.order[k][at] = int(key.row)
		}
	}
}

// key is a point's value in an objective.
type key struct {
	value float64
	row   int32
}

// mergeSort returns the keys in the stable order of their values, and the other of the
// two slices. Sorting dominates the time here; this takes a third of
// slices.SortStableFunc's.
func mergeSort(keys, scratch []key) (sorted, other []key) {
	const run = 8
	n := len(keys)
	for from := 0; from < n; from += run {
		part := keys[from:min(from+run, n)]
		for i := 1; i < len(part); i++ {
			v, j := part[i], i
			for ; j > 0 && v.value < part[j-1].value; j-- {
				part[j] = part[j-1]
			}
			part[j] = v
		}
	}
	for width := run; width < n; width *= 2 {
		for from := 0; from < n; from += 2 * width {
			middle, to := min(from+width, n), min(from+2*width, n)
			merge(scratch[from:to], keys[from:middle], keys[middle:to])
		}
		keys, scratch = scratch, keys
	}
	return keys, scratch
}

// merge merges sorted a and b to dst; equal elements of a come first.
func merge(dst, a, b []key) {
	if len(b) == 0 || len(a) > 0 && a[len(a)-1].value <= b[0].value {
		copy(dst[copy(dst, a):], b)
		return
	}
	i, j := 0, 0
	for k := range dst {
		if j >= len(b) || i < len(a) && a[i].value <= b[j].value {
			dst[k] = a[i]
			i++
		} else {
			dst[k] = b[j]
			j++
		}
	}
}

// collectDominators intersects, over the objectives, the sets of the points that
// are at least as good.
func (r *ranking) collectDominators(f []float64, n int) {
	m, w := r.objectives, r.words
	for k := range m {
		clear(r.running)
		order := r.order[k][:n]
		for from := 0; from < n; {
			to := from
			for ; to < n && f[order[to]*m+k] == f[order[from]*m+k]; to++ {
				r.running[order[to]/wordBits] |= 1 << (order[to] % wordBits)
			}
			for ; from < to; from++ {
				set := r.dominators[order[from]*w:][:w]
				if k == 0 {
					copy(set, r.running)
					continue
				}
				for i, word := range r.running {
					set[i] &= word
				}
			}
		}
	}
}

// assign gives each point, in lexicographic order, the first front that holds none of
// its dominators: a point dominated from a front is dominated from all earlier fronts.
func (r *ranking) assign(f []float64, n int) (fronts int) {
	m, w := r.objectives, r.words
	for at, i := range r.order[0][:n] {
		if at > 0 {
			// Equal points are in each other's sets but do not dominate each other.
			if j := r.order[0][at-1]; slices.Equal(f[i*m:i*m+m], f[j*m:j*m+m]) {
				r.addToFront(i, r.rank[j])
				continue
			}
		}
		set := r.dominators[i*w:][:w]
		front := 0
		for front < fronts && intersects(set, r.fronts[front*w:][:w]) {
			front++
		}
		if front == fronts {
			clear(r.fronts[front*w:][:w])
			r.count[front] = 0
			fronts++
		}
		r.addToFront(i, front)
	}
	return fronts
}

func (r *ranking) addToFront(i, front int) {
	r.rank[i] = front
	r.count[front]++
	r.fronts[front*r.words+i/wordBits] |= 1 << (i % wordBits)
}

func intersects(a, b []uint) bool {
	for i, word := range a {
		if word&b[i] != 0 {
			return true
		}
	}
	return false
}

// crowd sets the crowding distances: the sum over the objectives of the distance
// between a point's neighbours in its front, divided by the front's extent; +Inf for
// the ends (Deb et al. 2002, section III-B). One pass through an objective's order
// visits the points of all fronts in order.
func (r *ranking) crowd(f []float64, n, fronts int) {
	m := r.objectives
	clear(r.crowding[:n])
	for k := range m {
		r.measure(f, k, n, fronts)
		for i := range fronts {
			r.last[i], r.previous[i] = -1, -1
		}
		for _, i := range r.order[k][:n] {
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
}

// measure sets the extents of the fronts in objective k.
func (r *ranking) measure(f []float64, k, n, fronts int) {
	m := r.objectives
	for i := range fronts {
		r.last[i] = -1
	}
	for _, i := range r.order[k][:n] {
		front := r.rank[i]
		if r.last[front] < 0 {
			r.last[front] = i
		}
		r.extent[front] = f[i*m+k] - f[r.last[front]*m+k]
	}
}
