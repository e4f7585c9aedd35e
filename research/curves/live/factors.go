package live

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/study"
)

const users, items, truth, ratings, heldRatings = 150, 100, 4, 4000, 1500

// rating is what a user thinks of an item.
type rating struct {
	user, item int
	value      float64
}

// factorization learns a factor of each user and each item, whose product is a rating.
type factorization struct {
	all            []rating // of which the last heldRatings are held out
	ofUser, ofItem [][]float64
	rate, decay    float64
	l2             float64
	rng            *rand.Rand
}

// factors is a factorization of drawn ratings.
func factors() Task {
	rng := rand.New(rand.NewPCG(58, 3))
	user, item := normal(users, truth, 1, rng), normal(items, truth, 1, rng)
	var all []rating
	var squares float64
	for i := range ratings + heldRatings {
		r := rating{rng.IntN(users), rng.IntN(items), 0.5 * rng.NormFloat64()}
		r.value += floats.Dot(user[r.user], item[r.item])
		if all = append(all, r); i >= ratings {
			squares += r.value * r.value / heldRatings
		}
	}
	return Task{
		Parameters: []study.Parameter{
			float("learning_rate", 1e-4, 1, study.Log), float("decay", 0.7, 1, study.Linear), float("l2", 1e-4, 1, study.Log),
			whole("rank", 1, 32), float("scale", 1e-3, 1, study.Log),
		},
		Epochs: 40, Guess: math.Sqrt(squares), Best: 0.545,
		Pace: func(p study.Point) float64 { return (4 + number(p, "rank")) / 10 },
		New: func(p study.Point) Training {
			rng := rand.New(rand.NewPCG(58, 4))
			rank, scale := int(number(p, "rank")), number(p, "scale")
			return &factorization{
				all: all, ofUser: normal(users, rank, scale, rng), ofItem: normal(items, rank, scale, rng),
				rate: number(p, "learning_rate"), decay: number(p, "decay"), l2: number(p, "l2"), rng: rng,
			}
		},
	}
}

func normal(rows, columns int, scale float64, rng *rand.Rand) [][]float64 {
	list := make([][]float64, rows)
	for i := range list {
		list[i] = make([]float64, columns)
		for k := range list[i] {
			list[i][k] = scale * rng.NormFloat64()
		}
	}
	return list
}

// Epoch implements Training.
func (f *factorization) Epoch() float64 {
	for _, i := range f.rng.Perm(ratings) {
		r := f.all[i]
		u, v := f.ofUser[r.user], f.ofItem[r.item]
		off := floats.Dot(u, v) - r.value
		for k := range u {
			u[k], v[k] = u[k]-f.rate*(off*v[k]+f.l2*u[k]), v[k]-f.rate*(off*u[k]+f.l2*v[k])
		}
	}
	f.rate *= f.decay
	sum := 0.0
	for _, r := range f.all[ratings:] {
		off := floats.Dot(f.ofUser[r.user], f.ofItem[r.item]) - r.value
		sum += off * off / heldRatings
	}
	return orNaN(math.Sqrt(sum))
}
