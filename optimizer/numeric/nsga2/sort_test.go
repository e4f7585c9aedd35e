package nsga2

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// fronts peels off one front after another, comparing all points with all.
func fronts(f [][]float64) []int {
	rank := make([]int, len(f))
	for i := range rank {
		rank[i] = -1
	}
	for front, left := 0, len(f); left > 0; front++ {
		var members []int
		for i := range f {
			free := rank[i] < 0
			for j := range f {
				free = free && !(rank[j] < 0 && pareto.Dominates(f[j], f[i]))
			}
			if free {
				members = append(members, i)
			}
		}
		for _, i := range members {
			rank[i] = front
		}
		left -= len(members)
	}
	return rank
}

// crowding is the procedure of Deb et al. 2002, section III-B, for one front; ties in
// an objective are ordered by the next.
func crowding(f [][]float64, members []int, distance []float64) {
	for k := range f[0] {
		sorted := slices.Clone(members)
		slices.SortStableFunc(sorted, func(a, b int) int { return slices.Compare(f[a][k:], f[b][k:]) })
		end := len(sorted) - 1
		distance[sorted[0]], distance[sorted[end]] = math.Inf(1), math.Inf(1)
		extent := f[sorted[end]][k] - f[sorted[0]][k]
		for at := 1; at < end && extent > 0; at++ {
			distance[sorted[at]] += (f[sorted[at+1]][k] - f[sorted[at-1]][k]) / extent
		}
	}
}

func TestSortAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(t, "n")
		m := rapid.IntRange(1, 4).Draw(t, "m")
		values := rapid.SampledFrom([]int{2, 5, 40, 1 << 40}).Draw(t, "values") // many ties, or none
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r := newRanking(160, m)
		for range 2 { // the second time with leftover state
			f := make([][]float64, n)
			var flat []float64
			for i := range f {
				for range m {
					f[i] = append(f[i], float64(rng.IntN(values)))
				}
				flat = append(flat, f[i]...)
			}
			count := r.sort(flat, n)
			want := fronts(f)
			if !slices.Equal(r.rank[:n], want) {
				t.Fatalf("ranks of %v: %v, want %v", f, r.rank[:n], want)
			}
			if highest := slices.Max(want); count != highest+1 {
				t.Fatalf("%d fronts, want %d", count, highest+1)
			}
			distance := make([]float64, n)
			for front := range count {
				var members []int
				for i, rank := range want {
					if rank == front {
						members = append(members, i)
					}
				}
				crowding(f, members, distance)
			}
			for i, d := range distance {
				if got := r.crowding[i]; got != d && !(math.Abs(got-d) < 1e-12) {
					t.Fatalf("crowding of %v in %v: %g, want %g", f[i], f, got, d)
				}
			}
		}
	})
}

func TestIndexIsThePowerAndTheRoot(t *testing.T) {
	for _, n := range []index{2, 3, 16, 21, 64} {
		for _, x := range []float64{0, 1e-300, 0.1, 0.9, 1, 1.5, 40} {
			for _, pair := range [][2]float64{{n.power(x), math.Pow(x, float64(n))}, {n.root(x), math.Pow(x, 1/float64(n))}} {
				if got, want := pair[0], pair[1]; got != want && !(math.Abs(got-want) <= 1e-13*want) {
					t.Errorf("index %d at %g: %v, want %v", n, x, got, want)
				}
			}
		}
	}
}

// The density of β is polynomial: without bounds near, half of the children are
// contracted, P(β ≤ 1) = ½, and P(β ≤ b) = b^(η+1)/2 below (Deb and Agrawal 1995).
func TestCrossoverSpreadsAsDefined(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	v := variation{rng: rng, crossover: 3}
	const draws = 200_000
	var inside, near int
	for range draws {
		below, above := v.blend(0.4999, 0.5001) // the bounds are 2,500 distances away
		if beta := (0.5 - below) / 0.0001; beta <= 1 {
			inside++
		} else if beta <= 2 {
			near++
		}
		if !(below <= 0.5 && above >= 0.5) {
			t.Fatalf("children %g and %g", below, above)
		}
	}
	// Beyond 1, P(β > b) = ½·b^−(η+1): 1/16 beyond 2.
	for _, part := range []struct {
		name string
		got  int
		want float64
	}{{"β ≤ 1", inside, 0.5}, {"1 < β ≤ 2", near, 0.5 - 1.0/16}} {
		if p := float64(part.got) / draws; math.Abs(p-part.want) > 0.005 {
			t.Errorf("P(%s) = %.4f, want %.4f", part.name, p, part.want)
		}
	}
}

func TestMutationMovesByALevel(t *testing.T) {
	v := variation{
		variables: []Variable{{Levels: 2}, {Levels: 9}, {Levels: 4, Categorical: true}}, rng: rand.New(rand.NewPCG(4, 1)),
		mutation: mutationIndex, mutable: 1,
	}
	for range 1000 {
		x := []float64{0.25, 4.5 / 9, 1.5 / 4}
		v.mutate(x)
		for i, before := range []int{0, 4, 1} {
			if levelOf(x[i], v.variables[i].Levels) == before {
				t.Fatalf("column %d stayed in level %d: %g", i, before, x[i])
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	for name, m := range map[string]int{"two": 2, "three": 3} {
		b.Run(name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			f := make([]float64, 200*m)
			for i := range f {
				f[i] = rng.Float64()
			}
			r := newRanking(200, m)
			for b.Loop() {
				r.sort(f, 200)
			}
		})
	}
}
