package space

import (
	"github.com/fantasia-hpo/fantasia/study"
)

// maxBranches is the largest number of combinations of values that count visits.
const maxBranches = 1 << 17

// count returns Size. The numbers of values of unconnected parameters multiply;
// parameters connected by conditions are counted together, branch by branch.
func (s *Space) count() (n int, finite bool) {
	c := counter{space: s, point: make(study.Point), branches: maxBranches, listed: s.listed()}
	total := 1.0
	for _, group := range s.groups() {
		c.parents, c.leaves = c.parents[:0], c.leaves[:0]
		for _, i := range group {
			if len(c.listed[i]) > 0 {
				c.parents = append(c.parents, i)
			} else {
				c.leaves = append(c.leaves, i)
			}
		}
		total *= c.from(0)
		if !(total <= study.MaxExact) || c.branches < 0 {
			return 0, false
		}
	}
	return int(total), true
}

// groups splits the parameters into sets that no condition connects, each ascending.
func (s *Space) groups() [][]int {
	group := make([]int, len(s.params)) // of each parameter: a member of its set
	for i := range group {
		group[i] = i
		for _, c := range s.conds[i] {
			from, to := group[i], group[c.parent]
			for j := range i + 1 {
				if group[j] == from {
					group[j] = to
				}
			}
		}
	}
	members := make(map[int][]int)
	var names []int
	for i, g := range group {
		if members[g] == nil {
			names = append(names, g)
		}
		members[g] = append(members[g], i)
	}
	var groups [][]int
	for _, g := range names {
		groups = append(groups, members[g])
	}
	return groups
}

// counter counts the points of one group.
type counter struct {
	space *Space
	// parents are the group's parameters that conditions depend on, leaves the others.
	parents, leaves []int
	listed          [][]any
	point           study.Point
	branches        int
}

// listed returns, for each parameter, the values that conditions list.
func (s *Space) listed() [][]any {
	listed := make([][]any, len(s.params))
	for _, conds := range s.conds {
		for _, c := range conds {
			for _, v := range c.values {
				if !study.Contains(listed[c.parent], v) {
					listed[c.parent] = append(listed[c.parent], v)
				}
			}
		}
	}
	return listed
}

// from counts the points over the parents from the k-th on and all leaves. Values of a
// parent that no condition lists are equivalent: they are counted at once, and the
// parent is left without a value, which no condition accepts.
func (c *counter) from(k int) float64 {
	if c.branches < 0 {
		return 0
	}
	if k == len(c.parents) {
		c.branches--
		return c.leafProduct()
	}
	i := c.parents[k]
	if !c.space.active(c.point, i) {
		return c.from(k + 1)
	}
	p := &c.space.params[i]
	n, _ := p.Cardinality() // a parent is never a float
	total := 0.0
	for _, v := range c.listed[i] {
		c.point[p.Name] = v
		total += c.from(k + 1)
	}
	delete(c.point, p.Name)
	if others := n - len(c.listed[i]); others > 0 {
		total += float64(others) * c.from(k+1)
	}
	return total
}

// leafProduct returns the number of combinations of the active leaves' values, which is
// beyond maxExact if one of them is a float.
func (c *counter) leafProduct() float64 {
	total := 1.0
	for _, i := range c.leaves {
		if !c.space.active(c.point, i) {
			continue
		}
		n, finite := c.space.params[i].Cardinality()
		if !finite {
			return 2 * study.MaxExact
		}
		total *= float64(n)
	}
	return total
}
