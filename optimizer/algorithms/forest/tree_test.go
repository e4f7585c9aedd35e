package forest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

func all(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// The trees of scikit-learn 1.9.1 part the same rows in the same way.
func TestTreesOfScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/trees.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Leaf, Leaves int
		X            [][]float64
		Y, Predicted []float64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		features := make([]feature, len(c.X[0]))
		tree := grow(newTable(c.X, c.Y, features), all(len(c.Y)), growth{leaf: c.Leaf, features: 1}, rand.New(rand.NewPCG(1, 1)))
		leaves := 0
		for _, n := range tree.nodes {
			if n.left == 0 {
				leaves++
			}
		}
		if leaves != c.Leaves {
			t.Errorf("%d rows, leaves of %d: %d leaves, scikit-learn has %d", len(c.Y), c.Leaf, leaves, c.Leaves)
		}
		for i, x := range c.X {
			if got := tree.at(x).mean; math.Abs(got-c.Predicted[i]) > 1e-9 {
				t.Errorf("%d rows, leaves of %d: row %d is predicted as %g, by scikit-learn as %g", len(c.Y), c.Leaf, i, got, c.Predicted[i])
			}
		}
	}
}

// spread is the sum of squared deviations from the mean.
func spread(values []float64) float64 {
	var mean, sum float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// A split of choices is the best of all sets, found by trying each of them.
func TestBestSetOfChoices(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		const choices, n = 5, 25
		x, y := make([][]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = []float64{float64(rng.IntN(choices))}, rng.NormFloat64()
		}
		parted := func(left func(choice float64) bool) float64 {
			var a, b []float64
			for i := range x {
				if left(x[i][0]) {
					a = append(a, y[i])
				} else {
					b = append(b, y[i])
				}
			}
			if len(a) == 0 || len(b) == 0 {
				return math.Inf(1)
			}
			return spread(a) + spread(b)
		}
		want := math.Inf(1)
		for set := range 1 << choices {
			want = min(want, parted(func(c float64) bool { return set>>int(c)&1 == 1 }))
		}
		tree := grow(newTable(x, y, []feature{{choices: choices}}), all(n), growth{leaf: 1, features: 1}, rng)
		root := &tree.nodes[0]
		got := parted(func(c float64) bool { return root.below([]float64{c}) })
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("the root's set leaves a spread of %g, the best of all sets %g", got, want)
		}
	}
}

// A leaf keeps the mean and the variance of its rows, and the forest has the mean and the
// variance of a value from one of its trees: by drawing trees, and values from a normal
// distribution in the leaf.
func TestForestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x, y := make([][]float64, 60), make([]float64, 60)
	for i := range x {
		x[i] = []float64{rng.Float64(), rng.Float64()}
		y[i] = x[i][0] + 0.3*rng.NormFloat64()
	}
	m := newModel(x, y, make([]feature, 2), 20, growth{leaf: 5, features: 1}, rng)
	at := []float64{0.4, 0.6}
	mean, variance := m.predict(at)
	var sum, squares float64
	const draws = 200000
	for range draws {
		leaf := m.trees[rng.IntN(len(m.trees))].at(at)
		v := leaf.mean + math.Sqrt(leaf.variance)*rng.NormFloat64()
		sum += v / draws
		squares += v * v / draws
	}
	if want := squares - sum*sum; math.Abs(mean-sum) > 0.01 || math.Abs(variance-want) > 0.05*want {
		t.Errorf("mean %g and variance %g, by draws %g and %g", mean, variance, sum, want)
	}
}
