package forest

import "math/rand/v2"

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
