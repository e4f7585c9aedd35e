package linalg

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func numbers(n int, rng *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// The vector instructions give the same bits as plain Go.
func TestTileIsTileGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for name, f := range tiles() {
		for _, terms := range []int{1, 2, 7, depth} {
			for _, width := range []int{halfCols, tileCols} {
				for _, transposed := range []bool{false, true} {
					a := leftFactor{numbers(tileRows*200, rng), 200, 1}
					if transposed {
						a = leftFactor{numbers(terms*9, rng), 1, 9}
					}
					b, c := matrix{numbers(terms*19, rng), 19}, matrix{numbers(tileRows*21, rng), 21}
					want := matrix{slices.Clone(c.data), 21}
					f(width, terms, a, b, c, -1)
					tileGo(width, terms, a, b, want, -1)
					if !slices.Equal(c.data, want.data) {
						t.Errorf("%s: %d terms, width %d, transposed %v: %v, want %v", name, terms, width, transposed, c, want)
					}
				}
			}
		}
	}
}

func TestSolveStripIsSolveStripGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	for _, groups := range []int{0, 1, 2, 9} {
		for _, step := range []int{41, -41} {
			var f stripFactors
			copy(f[:], numbers(len(f), rng))
			b := numbers(strip*41, rng)
			want, first := slices.Clone(b), 2
			if step < 0 {
				first -= (strip - 1) * step
			}
			solveStrip(&f, b, first, step, groups)
			solveStripGo(&f, want, first, step, groups)
			if !slices.Equal(b, want) {
				t.Errorf("%d groups, step %d: %v, want %v", groups, step, b, want)
			}
		}
	}
}

func TestVectorGroupsAreGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	for _, groups := range []int{1, 2, 11} {
		rows, v := matrix{numbers(strip*50, rng), 50}, numbers(groups*lanes, rng)
		var sums, wantSums [strip * lanes]float64
		dotGroups(&sums, v, rows, groups)
		dotGroupsGo(&wantSums, v, rows, groups)
		if sums != wantSums {
			t.Errorf("%d groups: dot products %v, want %v", groups, sums, wantSums)
		}
		want, factors := slices.Clone(v), numbers(strip, rng)
		subtractGroups(v, factors, rows, groups)
		subtractGroupsGo(want, factors, rows, groups)
		if !slices.Equal(v, want) {
			t.Errorf("%d groups: rows subtracted give %v, want %v", groups, v, want)
		}
		squareGroups(v, rows, groups)
		squareGroupsGo(want, rows, groups)
		if !slices.Equal(v, want) {
			t.Errorf("%d groups: squares added give %v, want %v", groups, v, want)
		}
	}
}

// Each element has the bits of its own product of a row and a column, at any position,
// and agrees with gonum's up to rounding.
func TestProduct(t *testing.T) {
	sizes := rapid.OneOf(rapid.IntRange(0, 40), rapid.SampledFrom([]int{8, 16, 24, 32}))
	rapid.Check(t, func(r *rapid.T) {
		rows, cols := sizes.Draw(r, "rows"), sizes.Draw(r, "cols")
		terms := rapid.IntRange(0, 2*depth+3).Draw(r, "terms")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		a := matrix{numbers(rows*(terms+1), rng), terms + 1}
		b := matrix{numbers(terms*(cols+2), rng), cols + 2}
		c := matrix{numbers(rows*(cols+3), rng), cols + 3}
		single, upper := matrix{slices.Clone(c.data), c.stride}, matrix{slices.Clone(c.data), c.stride}
		before := slices.Clone(c.data)
		p := product{sign: -1, a: a.plain(), b: b, rows: rows, cols: cols, terms: terms}
		p.addTo(c)
		p.upper = true
		p.addTo(upper)
		for i := range rows {
			for j := range cols {
				product{sign: -1, a: a.from(i, 0).plain(), b: b.from(0, j), rows: 1, cols: 1, terms: terms}.addTo(single.from(i, j))
				if at := i*c.stride + j; j >= i && upper.data[at] != c.data[at] {
					t.Errorf("%d×%d×%d: element (%d, %d) above the diagonal differs", rows, cols, terms, i, j)
				}
			}
		}
		if !slices.Equal(c.data, single.data) {
			t.Errorf("%d×%d×%d: an element's bits depend on its tile", rows, cols, terms)
		}
		if rows*cols*terms == 0 {
			return
		}
		var product mat.Dense
		product.Mul(mat.NewDense(rows, terms+1, a.data).Slice(0, rows, 0, terms), mat.NewDense(terms, cols+2, b.data).Slice(0, terms, 0, cols))
		var want mat.Dense
		want.Sub(mat.NewDense(rows, cols+3, before).Slice(0, rows, 0, cols), &product)
		if !mat.EqualApprox(mat.NewDense(rows, cols+3, c.data).Slice(0, rows, 0, cols), &want, 1e-12) {
			t.Errorf("%d×%d×%d: the product is wrong", rows, cols, terms)
		}
	})
}

// BenchmarkTile is a tile of factors that the first-level cache holds.
func BenchmarkTile(b *testing.B) {
	rng := rand.New(rand.NewPCG(4, 0))
	left, right := leftFactor{numbers(tileRows*depth, rng), 1, tileRows}, matrix{numbers(tileCols*depth, rng), tileCols}
	c := matrix{make([]float64, tileRows*tileCols), tileCols}
	for name, f := range tiles() {
		for _, width := range []int{halfCols, tileCols} {
			b.Run(fmt.Sprintf("%s/%d", name, width), func(b *testing.B) {
				for b.Loop() {
					f(width, depth, left, right, c, 1)
				}
				b.ReportMetric(float64(2*tileRows*depth*width*b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}
