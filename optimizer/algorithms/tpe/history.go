package tpe

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// history is the places of the observations' points, also in sorted order. A proposer keeps it from
// one request to the next, so that it encodes and sorts only what is new. It is a cache: it holds
// nothing that the observations do not tell, and is made anew if they are others.
// Not safe for concurrent use.
type history struct {
	encoding *optimizer.Encoding
	known    []optimizer.Observation // only their points
	tables   []*table                // of the groups, in their order
	terms    []float64               // scratch, for logDensity
}

// table holds the observations at which a group is active.
type table struct {
	*group
	numbers []int    // of the observations
	series  []series // of the columns
	bad     parzen   // scratch, for badOnes
	kernel  []int    // scratch, for badOnes
}

// series is one column of a table.
type series struct {
	// normals are the kernels that the rows had last as bad points; the means are the rows' places.
	// Few kernels change from one request to the next, and masses take longer than all else.
	normals
	order []int // the rows by place, the earlier first where places are equal
	early []int // scratch, for sort and fill
}

func newHistory(encoding *optimizer.Encoding) *history {
	h := &history{encoding: encoding}
	for _, g := range newGroups(encoding) {
		t := &table{group: g, series: make([]series, len(g.columns)), bad: parzen{columns: make([]mixture, len(g.columns))}}
		for i := range g.columns {
			t.bad.columns[i].column = &g.columns[i]
		}
		h.tables = append(h.tables, t)
	}
	return h
}

// of reports whether the history is that of earlier observations of the same study.
func (h *history) of(encoding *optimizer.Encoding, observations []optimizer.Observation) bool {
	if h.encoding != encoding || len(h.known) > len(observations) {
		return false
	}
	for i := range h.known {
		if !h.known[i].Same(&observations[i]) {
			return false
		}
	}
	return true
}

// add takes in the observations that the history does not have yet.
func (h *history) add(observations []optimizer.Observation) {
	for number := len(h.known); number < len(observations); number++ {
		o := &observations[number]
		p := o.At()
		x := h.encoding.Encode(p)
		for _, t := range h.tables {
			if _, active := p[t.name]; !active {
				continue
			}
			t.numbers = append(t.numbers, number)
			for k, at := range t.at {
				t.series[k].mean = append(t.series[k].mean, x[at])
			}
		}
		h.known = append(h.known, optimizer.Observation{Point: o.Point, Packed: o.Packed})
	}
	for _, t := range h.tables {
		for k := range t.series {
			t.series[k].sort()
		}
	}
}

// sort puts the rows that are new into the order.
func (s *series) sort() {
	known, rows := len(s.order), len(s.mean)
	if known == rows {
		return
	}
	s.early = append(s.early[:0], s.order...)
	s.order = merge(s.order, s.early, sorted(known, rows, s.mean), s.mean)
	s.resize(rows)
	clear(s.sd[known:]) // no kernel has that
}

// sorted returns the numbers from low to high, without high, by their place.
func sorted(low, high int, at []float64) []int {
	list := make([]int, high-low)
	for i := range list {
		list[i] = low + i
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	return list
}

// merge returns two lists of numbers as one, in the memory of into. Both are sorted by place. Where
// places are equal, those of a come first.
func merge(into, a, b []int, at []float64) []int {
	into = into[:0]
	for _, later := range b {
		n := 0
		for n < len(a) && at[a[n]] <= at[later] {
			n++
		}
		into = append(append(into, a[:n]...), later)
		a = a[n:]
	}
	return append(into, a...)
}

// goodOnes returns the density of the good points.
func (t *table) goodOnes(good []bool, several bool) *parzen {
	var rows [][]float64
	for r, number := range t.numbers {
		if !good[number] {
			continue
		}
		row := make([]float64, len(t.series))
		for k := range t.series {
			row[k] = t.series[k].mean[r]
		}
		rows = append(rows, row)
	}
	weights := ramp(len(rows))
	if several { // early points of a front are as good as late ones
		weights = slices.Repeat([]float64{1}, len(rows))
	}
	return newParzen(t.columns, rows, weights, true)
}

// badOnes returns the density of all other points and, as the latest, those that are open, which
// are coordinates in the order of the columns. It is as newParzen makes it, and holds until the
// next call.
func (t *table) badOnes(good []bool, open [][]float64) *parzen {
	t.kernel = t.kernel[:0]
	n := 0
	for _, number := range t.numbers {
		if good[number] {
			t.kernel = append(t.kernel, -1)
			continue
		}
		t.kernel = append(t.kernel, n)
		n++
	}
	at := make([]float64, len(open))
	for i := range t.series {
		for k, x := range open {
			at[k] = x[i]
		}
		t.series[i].fill(&t.bad.columns[i], t.kernel, n, at)
	}
	t.bad.weigh(ramp(n + len(open)))
	return &t.bad
}

// fill makes a mixture of n rows and, after them, further places. kernel is the number of each row's
// kernel, or -1 if it has none.
func (s *series) fill(m *mixture, kernel []int, n int, more []float64) {
	points := n + len(more)
	m.mean = resized(m.mean[:0], n)
	for r, k := range kernel {
		if k >= 0 {
			m.mean[k] = s.mean[r]
		}
	}
	m.mean = append(m.mean, more...)
	if m.column.Unordered() {
		m.vote(false)
		return
	}
	s.early = s.early[:0]
	for _, r := range s.order {
		if kernel[r] >= 0 {
			s.early = append(s.early, kernel[r])
		}
	}
	m.order = merge(m.order, s.early, sorted(n, points, m.mean), m.mean)
	m.spread()
	for r, k := range kernel {
		if k < 0 {
			continue
		}
		if s.sd[r] != m.sd[k] {
			s.set(r, m.mean[k], m.sd[k])
		}
		m.logMass[k], m.constant[k] = s.logMass[r], s.constant[r]
	}
	for k := n; k < points; k++ {
		m.set(k, m.mean[k], m.sd[k])
	}
	m.set(points, 0.5, 1)
	m.classify()
}
