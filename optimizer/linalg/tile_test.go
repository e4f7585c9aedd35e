package linalg

import (
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
	for _, terms := range []int{1, 2, 7, depth} {
		for _, transposed := range []bool{false, true} {
			a := leftFactor{numbers(4*200, rng), 200, 1}
			if transposed {
				a = leftFactor{numbers(terms*9, rng), 1, 9}
			}
			b, c := numbers(terms*11, rng), numbers(4*13, rng)
			want := slices.Clone(c)
			tile(terms, a.data, a.byRow, a.byTerm, b, 11, c, 13, -1)
			tileGo(terms, a.data, a.byRow, a.byTerm, b, 11, want, 13, -1)
			if !slices.Equal(c, want) {
				t.Errorf("%d terms, transposed %v: %v, want %v", terms, transposed, c, want)
			}
		}
	}
}

// Each element has the bits of its own product of a row and a column, wherever
// it lies; and it is what gonum computes but for rounding.
func TestAddProduct(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows, cols := rapid.IntRange(0, 20).Draw(r, "rows"), rapid.IntRange(0, 20).Draw(r, "cols")
		terms := rapid.IntRange(0, 2*depth+3).Draw(r, "terms")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		a := matrix{numbers(rows*(terms+1), rng), terms + 1}
		b := matrix{numbers(terms*(cols+2), rng), cols + 2}
		c := matrix{numbers(rows*(cols+3), rng), cols + 3}
		single := matrix{slices.Clone(c.data), c.stride}
		before := slices.Clone(c.data)
		addProduct(c, -1, a.plain(), b, rows, cols, terms)
		for i := range rows {
			for j := range cols {
				addProduct(single.from(i, j), -1, a.from(i, 0).plain(), b.from(0, j), 1, 1, terms)
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
