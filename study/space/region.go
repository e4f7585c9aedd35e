package space

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// halfspaces are the places u in the unit cube with low ≤ weights·u ≤ high.
type halfspaces struct {
	weights   []float64
	low, high float64
}

// region is what meets linear conditions in the unit cube of the floats to move. It is
// immutable.
type region struct {
	names []string
	rows  []halfspaces
	// tight are the numbers of the rows that are solved: they are independent. base is an
	// orthonormal base of their weights, which are factor·base.
	tight        []int
	base, factor [][]float64
	centre       []float64 // a place within
	usual        *reduced
}

// region returns the places that meet the conditions with the other values of a point; nil if
// none does.
func (v *solver) region(p, fixed study.Point) *region {
	r := &region{}
	for _, name := range v.names {
		if _, ok := fixed[name]; !ok {
			r.names = append(r.names, name)
		}
	}
	for k, row := range v.rows {
		h := halfspaces{weights: make([]float64, len(r.names)), low: row.low, high: row.high}
		var least, most float64
		for i, name := range row.names {
			w, at := row.weights[i], slices.Index(r.names, name)
			low, high := v.space.rangeOf(name)
			if at < 0 {
				value, ok := study.Number(p[name])
				if !ok {
					return nil // of a partial point
				}
				low, high = value, value
			} else {
				h.weights[at] = w * (high - low)
			}
			h.low, h.high = h.low-w*low, h.high-w*low
			least, most = least+min(0, w*(high-low)), most+max(0, w*(high-low))
		}
		if h.low > most+touching || h.high < least-touching {
			return nil
		}
		r.rows = append(r.rows, h)
		if k < v.tight {
			r.orthogonalise(k)
		}
	}
	if !r.findCentre() {
		return nil
	}
	r.usual = eliminate(r.solved(), nil)
	return r
}

// orthogonalise adds the row to those that are solved, unless it depends on them.
func (r *region) orthogonalise(k int) {
	rest, factor := slices.Clone(r.rows[k].weights), make([]float64, len(r.base)+1)
	for range 2 { // twice, for accuracy
		for j, b := range r.base {
			along := dot(rest, b)
			factor[j] += along
			add(rest, -along, b)
		}
	}
	length := math.Sqrt(dot(rest, rest))
	if length <= 1e-9*math.Sqrt(dot(r.rows[k].weights, r.rows[k].weights)) {
		return
	}
	for i := range rest {
		rest[i] /= length
	}
	factor[len(r.base)] = length
	r.tight, r.base, r.factor = append(r.tight, k), append(r.base, rest), append(r.factor, factor)
}

// solved returns the rows that are solved.
func (r *region) solved() []halfspaces {
	rows := make([]halfspaces, len(r.tight))
	for i, k := range r.tight {
		rows[i] = r.rows[k]
	}
	return rows
}

// inward returns v, or what is nearest to it at least margin, as a share, inside the ends.
func (h halfspaces) inward(v, margin float64) float64 {
	by := margin * (h.high - h.low)
	if math.IsInf(by, 0) {
		by = margin
	}
	return min(max(v, h.low+by), h.high-by)
}

// shift changes the sums of the solved rows by the shortest step.
func (r *region) shift(u, by []float64) {
	s := make([]float64, len(r.base))
	for k, b := range r.base {
		s[k] = (by[k] - dot(r.factor[k][:k], s)) / r.factor[k][k]
		add(u, s[k], b)
	}
}

// align moves u to where the solved rows hold.
func (r *region) align(u []float64, margin float64) {
	by := make([]float64, len(r.tight))
	for i, k := range r.tight {
		sum := dot(r.rows[k].weights, u)
		by[i] = r.rows[k].inward(sum, margin) - sum
	}
	r.shift(u, by)
}

// met reports whether u is in the region, but for a difference, and at least margin off the
// cube's sides.
func (r *region) met(u []float64, by, margin float64) bool {
	if slices.ContainsFunc(u, func(v float64) bool { return v < margin-by || v > 1-margin+by }) {
		return false
	}
	for _, h := range r.rows {
		if sum := dot(h.weights, u); sum < h.low-by || sum > h.high+by {
			return false
		}
	}
	return true
}

// findCentre looks for a place within the region, by alternating projections onto the rows and
// the cube, all of them narrowed.
func (r *region) findCentre() bool {
	const rounds = 500
	u := slices.Repeat([]float64{0.5}, len(r.names))
	for _, margin := range []float64{0.1, 1e-2, 1e-3, 1e-5, 0} {
		for range rounds {
			r.align(u, 0.5)
			if r.met(u, touching, margin/2) {
				r.centre = u
				return true
			}
			for i, v := range u {
				u[i] = min(max(v, margin), 1-margin)
			}
			for _, h := range r.rows {
				sum, squares := dot(h.weights, u), dot(h.weights, h.weights)
				if within := h.inward(sum, margin); within != sum && squares > 0 {
					add(u, (within-sum)/squares, h.weights)
				}
			}
		}
	}
	return false
}

// project moves u to the nearest place where the solved rows hold, and from there towards the
// centre as far as the cube and the other rows demand.
func (r *region) project(u []float64) {
	r.align(u, 1e-3)
	share := 1.0
	reach := func(from, to, low, high float64) {
		if to > high {
			share = min(share, (high-from)/(to-from))
		}
		if to < low {
			share = min(share, (low-from)/(to-from))
		}
	}
	for i, v := range u {
		reach(r.centre[i], v, 0, 1)
	}
	for k, h := range r.rows {
		from, to := dot(h.weights, r.centre), dot(h.weights, u)
		if slices.Contains(r.tight, k) || h.high-h.low <= 2*touching || to >= h.low && to <= h.high {
			continue
		}
		reach(from, to, h.low+touching, h.high-touching) // where rounding breaks no constraint
	}
	share = max(share, 0)
	for i, v := range u {
		u[i] = min(max(r.centre[i]+share*(v-r.centre[i]), 0), 1)
	}
}

// pivot solves for one float of each row that is solved. It reports whether their values are
// within their ranges. Of a slab, the place of that float chooses the sum.
func (r *region) pivot(u []float64) bool {
	sums := make([]float64, len(r.tight))
	for i, k := range r.tight {
		h := r.rows[k]
		sums[i] = h.low + u[r.usual.pivots[i]]*(h.high-h.low)
	}
	for _, at := range r.usual.pivots {
		u[at] = 0
	}
	solved := make([]float64, len(sums))
	for i := range solved {
		solved[i] = dot(r.usual.sums[i], sums) - dot(r.usual.weights[i], u)
		if !(solved[i] >= 0 && solved[i] <= 1) {
			return false
		}
	}
	for i, at := range r.usual.pivots {
		u[at] = solved[i]
	}
	return true
}

// walk moves u to a random place of the region by hit-and-run (Smith 1984), from the centre.
func (r *region) walk(u []float64, rng *rand.Rand) {
	copy(u, r.centre)
	free := len(u) - len(r.base)
	var slabs []int
	for i, k := range r.tight {
		if r.rows[k].high > r.rows[k].low {
			slabs = append(slabs, i)
		}
	}
	if free+len(slabs) == 0 {
		return
	}
	for range min(50+4*free*free, 10_000) {
		step, slab := make([]float64, len(u)), -1
		if i := rng.IntN(free + len(slabs)); i < len(slabs) {
			slab = slabs[i]
			by := make([]float64, len(r.tight))
			by[slab] = 1
			r.shift(step, by)
		} else {
			for i := range step {
				step[i] = rng.NormFloat64()
			}
			for _, b := range r.base {
				add(step, -dot(step, b), b)
			}
		}
		low, high := r.chord(u, step, slab)
		add(u, low+rng.Float64()*(high-low), step)
	}
}

// chord returns how far u can go along step, which changes none of the solved rows but one.
func (r *region) chord(u, step []float64, slab int) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	clip := func(at, by, least, most float64) {
		switch {
		case by > 0:
			low, high = max(low, (least-at)/by), min(high, (most-at)/by)
		case by < 0:
			low, high = max(low, (most-at)/by), min(high, (least-at)/by)
		}
	}
	for i, v := range u {
		clip(v, step[i], 0, 1)
	}
	for k, h := range r.rows {
		if i := slices.Index(r.tight, k); i < 0 || i == slab {
			clip(dot(h.weights, u), dot(h.weights, step), h.low, h.high)
		}
	}
	return min(low, 0), max(high, 0)
}

// reduced are rows after Gauss-Jordan elimination: the float at each pivot is sums·s -
// weights·u, where s are the rows' sums and u the other floats.
type reduced struct {
	pivots        []int
	weights, sums [][]float64
}

// eliminate solves independent rows for one float each, those with the largest weights. These
// are multiplied with slack, if it is not nil.
func eliminate(rows []halfspaces, slack []float64) *reduced {
	e := &reduced{}
	for k, h := range rows {
		e.weights = append(e.weights, slices.Clone(h.weights))
		e.sums = append(e.sums, make([]float64, len(rows)))
		e.sums[k][k] = 1
	}
	for k, w := range e.weights {
		pivot, largest := 0, -1.0
		for i, v := range w {
			if slack != nil {
				v *= slack[i]
			}
			if math.Abs(v) > largest && !slices.Contains(e.pivots, i) {
				pivot, largest = i, math.Abs(v)
			}
		}
		e.pivots = append(e.pivots, pivot)
		by := w[pivot]
		for i := range w {
			w[i] /= by
		}
		for i := range e.sums[k] {
			e.sums[k][i] /= by
		}
		for j := range e.weights {
			if j != k {
				by := e.weights[j][pivot]
				add(e.weights[j], -by, w)
				add(e.sums[j], -by, e.sums[k])
			}
		}
	}
	return e
}

// dot returns the product of two vectors of the length of a.
func dot(a, b []float64) float64 {
	var sum float64
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// add adds by·b to a.
func add(a []float64, by float64, b []float64) {
	for i, v := range b {
		a[i] += by * v
	}
}
