package live

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// boosted is gradient boosting of regression trees for squared errors: an epoch is a tree.
type boosted struct {
	*data
	rate, share, columns, l2 float64
	leaf, depth              int
	answer, heldAnswer       []float64
	rng                      *rand.Rand
}

// boosting learns the function of Friedman (1991), of ten features of which five matter.
func boosting() Task {
	d := draw(400, 400, 10, func(x []float64, rng *rand.Rand) float64 {
		return 10*math.Sin(math.Pi*x[0]*x[1]) + 20*(x[2]-0.5)*(x[2]-0.5) + 10*x[3] + 5*x[4] - 14.4 + rng.NormFloat64()
	})
	var squares float64
	for _, y := range d.heldTarget {
		squares += y * y / float64(len(d.heldTarget))
	}
	return Task{
		Parameters: []study.Parameter{
			float("learning_rate", 3e-3, 1, study.Log), float("subsample", 0.1, 1, study.Linear), float("columns", 0.1, 1, study.Linear),
			whole("leaf", 1, 100), whole("depth", 1, 6), float("l2", 1e-2, 100, study.Log),
		},
		Epochs: 60, Guess: math.Sqrt(squares), Best: 1.63,
		Pace: func(p study.Point) float64 { return number(p, "depth") * number(p, "columns") * number(p, "subsample") },
		New: func(p study.Point) Training {
			return &boosted{
				data: d, rate: number(p, "learning_rate"), share: number(p, "subsample"), columns: number(p, "columns"), l2: number(p, "l2"),
				leaf: int(number(p, "leaf")), depth: int(number(p, "depth")),
				answer: make([]float64, len(d.x)), heldAnswer: make([]float64, len(d.held)), rng: rand.New(rand.NewPCG(58, 5)),
			}
		},
	}
}

// Epoch implements Training.
func (b *boosted) Epoch() float64 {
	rows := b.rng.Perm(len(b.x))[:max(1, int(b.share*float64(len(b.x))))]
	features := b.rng.Perm(len(b.x[0]))[:max(1, int(b.columns*float64(len(b.x[0]))))]
	tree := b.grow(rows, features, b.depth)
	for i, x := range b.x {
		b.answer[i] += b.rate * tree(x)
	}
	sum := 0.0
	for i, x := range b.held {
		b.heldAnswer[i] += b.rate * tree(x)
		off := b.heldAnswer[i] - b.heldTarget[i]
		sum += off * off / float64(len(b.held))
	}
	return orNaN(math.Sqrt(sum))
}

// grow returns a regression tree over some rows. It takes the split that explains most of the residuals, and grows a tree on each
// side of it.
func (b *boosted) grow(rows, features []int, depth int) func(x []float64) float64 {
	total := 0.0
	for _, i := range rows {
		total += b.y[i] - b.answer[i]
	}
	n := len(rows)
	worth := func(sum float64, count int) float64 { return sum * sum / (float64(count) + b.l2) }
	best, feature, at := worth(total, n)+1e-9, -1, 0.0
	sorted := slices.Clone(rows)
	for _, k := range features {
		if depth == 0 {
			break
		}
		slices.SortFunc(sorted, func(i, j int) int {
			if b.x[i][k] < b.x[j][k] {
				return -1
			}
			return 1
		})
		left := 0.0
		for c, i := range sorted[:n-1] {
			left += b.y[i] - b.answer[i]
			if c+1 < b.leaf || n-c-1 < b.leaf {
				continue
			}
			if v := worth(left, c+1) + worth(total-left, n-c-1); v > best {
				best, feature, at = v, k, (b.x[i][k]+b.x[sorted[c+1]][k])/2
			}
		}
	}
	if feature < 0 {
		value := total / (float64(n) + b.l2)
		return func([]float64) float64 { return value }
	}
	var below, above []int
	for _, i := range rows {
		if b.x[i][feature] <= at {
			below = append(below, i)
		} else {
			above = append(above, i)
		}
	}
	left, right := b.grow(below, features, depth-1), b.grow(above, features, depth-1)
	return func(x []float64) float64 {
		if x[feature] <= at {
			return left(x)
		}
		return right(x)
	}
}
