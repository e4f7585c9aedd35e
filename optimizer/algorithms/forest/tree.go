package forest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// maxChoices is the largest number of choices of a categorical feature that a split can
// sort into two sets; features with more are split by the choices' numbers.
const maxChoices = 64

// feature describes a column of the data: numbers, or, with choices, numbers of a choice
// from 0 on.
type feature struct {
	choices int // 0 for numbers
}

// growth says how trees grow.
type growth struct {
	leaf     int     // least number of rows in a leaf
	features float64 // share of the features that each split chooses from
}

// tree is a regression tree. A node is a leaf if it has no left child.
type tree struct{ nodes []node }

type node struct {
	feature     int
	threshold   float64 // rows below it go left,
	set         uint64  // or rows whose choice is in the set, if the feature has choices
	subset      bool
	left, right int32
	mean        float64
	variance    float64 // of the rows' values, divided by their number
}

// grower grows a tree to the rows of a data set.
type grower struct {
	*table
	growth growth
	rng    *rand.Rand
	tree   tree
	keys   []uint64 // scratch for sorting
}

// table is the data that trees are grown to.
type table struct {
	x        [][]float64
	y        []float64
	features []feature
	// ranks holds the place of each row's value among the values of each feature; equal
	// values have equal places.
	ranks [][]uint32
}

func newTable(x [][]float64, y []float64, features []feature) *table {
	t := &table{x: x, y: y, features: features}
	order := make([]int, len(y))
	for f := range features {
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a][f], x[b][f]) })
		ranks := make([]uint32, len(y))
		for i, r := range order {
			ranks[r] = uint32(i) // rows are few
			if i > 0 && x[r][f] == x[order[i-1]][f] {
				ranks[r] = ranks[order[i-1]]
			}
		}
		t.ranks = append(t.ranks, ranks)
	}
	return t
}

// grow returns the tree of those rows; a row may be listed several times. Each split is
// the one that lowers the sum of squared deviations most, and its threshold is uniform
// between the two values that it parts, so that an ensemble varies smoothly.
func grow(t *table, rows []int, g growth, rng *rand.Rand) tree {
	w := &grower{table: t, growth: g, rng: rng, keys: make([]uint64, 0, len(rows))}
	w.node(rows)
	return w.tree
}

// node adds the node of the rows, which it reorders, and those below it; it returns its
// number.
func (w *grower) node(rows []int) int32 {
	at := int32(len(w.tree.nodes))
	var n node
	n.mean, n.variance = moments(w.y, rows)
	w.tree.nodes = append(w.tree.nodes, n)
	if len(rows) < 2*w.growth.leaf || n.variance == 0 {
		return at
	}
	best := split{gain: 0}
	for _, f := range w.chosen() {
		w.consider(&best, f, rows)
	}
	if best.gain <= 0 {
		return at
	}
	n.feature, n.subset, n.set = best.feature, best.subset, best.set
	if !best.subset {
		n.threshold = best.low + (best.high-best.low)*w.rng.Float64()
		if n.threshold <= best.low { // the largest value on the left is below it
			n.threshold = best.high
		}
	}
	left := slices.Clone(rows[:0])
	var right []int
	for _, r := range rows {
		if n.below(w.x[r]) {
			left = append(left, r)
		} else {
			right = append(right, r)
		}
	}
	n.left = w.node(left)
	n.right = w.node(right)
	w.tree.nodes[at] = n
	return at
}

// chosen returns the features that a split chooses from.
func (w *grower) chosen() []int {
	all := w.rng.Perm(len(w.features))
	return all[:max(1, int(math.Ceil(w.growth.features*float64(len(all)))))]
}

// split parts the rows at a feature: by a threshold between low and high, or by a set of
// choices. gain is what it takes off the sum of squared deviations.
type split struct {
	gain      float64
	feature   int
	low, high float64
	subset    bool
	set       uint64
}

// consider replaces best by the feature's best split if that is better.
func (w *grower) consider(best *split, f int, rows []int) {
	choices := w.features[f].choices
	subset := choices > 0 && choices <= maxChoices
	keys := w.keys[:0]
	if subset {
		// Of all sets, the best consists of the choices with the lowest means (Fisher 1958).
		places := w.places(f, choices, rows)
		for _, r := range rows {
			keys = append(keys, places[int(w.x[r][f])]<<32|uint64(r))
		}
	} else {
		for _, r := range rows {
			keys = append(keys, uint64(w.ranks[f][r])<<32|uint64(r))
		}
	}
	slices.Sort(keys)
	var total float64
	for _, r := range rows {
		total += w.y[r]
	}
	n := float64(len(keys))
	var sum float64
	var set uint64
	for i := range len(keys) - 1 {
		r, next := uint32(keys[i]), uint32(keys[i+1])
		sum += w.y[r]
		if subset {
			set |= 1 << uint(w.x[r][f])
		}
		if keys[i]>>32 == keys[i+1]>>32 || i+1 < w.growth.leaf || len(keys)-i-1 < w.growth.leaf {
			continue
		}
		a := float64(i + 1)
		gain := sum*sum/a + (total-sum)*(total-sum)/(n-a) - total*total/n
		if gain > best.gain*(1+1e-12) {
			*best = split{gain: gain, feature: f, low: w.x[r][f], high: w.x[next][f], subset: subset, set: set}
		}
	}
	if best.subset && best.feature == f && w.rng.IntN(2) == 0 {
		// Choices that no row has go to either side.
		best.set |= ^w.seen(f, rows)
	}
}

// places returns the place of each choice in the order of their mean values.
func (w *grower) places(f, choices int, rows []int) []uint64 {
	sums, counts := make([]float64, choices), make([]float64, choices)
	for _, r := range rows {
		k := int(w.x[r][f])
		sums[k] += w.y[r]
		counts[k]++
	}
	order := make([]int, choices)
	for k := range sums {
		sums[k] /= max(1, counts[k])
	}
	floats.ArgsortStable(sums, order)
	places := make([]uint64, choices)
	for i, k := range order {
		places[k] = uint64(i)
	}
	return places
}

// seen returns the set of the rows' choices.
func (w *grower) seen(f int, rows []int) uint64 {
	var set uint64
	for _, r := range rows {
		set |= 1 << uint(w.x[r][f])
	}
	return set
}

// below reports whether a point goes to the left child.
func (n *node) below(x []float64) bool {
	if n.subset {
		return n.set>>uint(x[n.feature])&1 == 1
	}
	return x[n.feature] < n.threshold
}

// at returns the leaf of a point.
func (t *tree) at(x []float64) *node {
	n := &t.nodes[0]
	for n.left != 0 {
		if n.below(x) {
			n = &t.nodes[n.left]
		} else {
			n = &t.nodes[n.right]
		}
	}
	return n
}

func moments(y []float64, rows []int) (mean, variance float64) {
	for _, r := range rows {
		mean += y[r] / float64(len(rows))
	}
	for _, r := range rows {
		variance += (y[r] - mean) * (y[r] - mean) / float64(len(rows))
	}
	return mean, variance
}

// model is a random forest.
type model struct{ trees []tree }

// leastVariance keeps the standard deviation above 0 where all trees agree: outcomes are
// scaled to a range of 1 or more.
const leastVariance = 1e-10

// newModel grows trees, each to as many rows as there are, drawn with replacement.
func newModel(x [][]float64, y []float64, features []feature, trees int, g growth, rng *rand.Rand) *model {
	m := &model{}
	t := newTable(x, y, features)
	rows := make([]int, len(y))
	for range trees {
		for i := range rows {
			rows[i] = rng.IntN(len(y))
		}
		m.trees = append(m.trees, grow(t, rows, g, rng))
	}
	return m
}

// predict returns the mean of the trees' means, and the variance of a value from a tree
// chosen at random: the mean of the leaves' variances and the variance of their means.
func (m *model) predict(x []float64) (mean, variance float64) {
	var squares float64
	n := float64(len(m.trees))
	for i := range m.trees {
		leaf := m.trees[i].at(x)
		mean += leaf.mean / n
		squares += leaf.mean * leaf.mean / n
		variance += leaf.variance / n
	}
	return mean, max(leastVariance, variance+max(0, squares-mean*mean))
}
