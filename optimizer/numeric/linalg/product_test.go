package linalg

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

func TestAddProductAgainstGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	for _, size := range [][3]int{{1, 1, 1}, {3, 200, 5}, {64, 64, 100}, {7, 0, 4}, {0, 3, 2}} {
		rows, terms, cols := size[0], size[1], size[2]
		general := func(rows, cols int) blas64.General {
			return blas64.General{Rows: rows, Cols: cols, Stride: cols + 1, Data: numbers(rows*(cols+1), rng)}
		}
		a, b, c := general(rows, terms), general(terms, cols), general(rows, cols)
		var want mat.Dense
		if rows > 0 {
			var before mat.Dense
			before.SetRawMatrix(c)
			want.CloneFrom(&before)
			if terms > 0 {
				var left, right, product mat.Dense
				left.SetRawMatrix(a)
				right.SetRawMatrix(b)
				product.Mul(&left, &right)
				want.Add(&before, &product)
			}
		}
		AddProduct(c, a, b)
		for i := range rows {
			for j := range cols {
				if got := c.Data[i*c.Stride+j]; got-want.At(i, j) > 1e-12 || want.At(i, j)-got > 1e-12 {
					t.Fatalf("%d×%d×%d: element (%d, %d) is %v, by gonum %v", rows, terms, cols, i, j, got, want.At(i, j))
				}
			}
		}
	}
}

func TestAddProductChecksSizes(t *testing.T) {
	defer func() {
		if got, want := recover(), "linalg: product of 2×3 and 2×4 added to 2×4"; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	of := func(rows, cols int) blas64.General {
		return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
	}
	AddProduct(of(2, 4), of(2, 3), of(2, 4))
}
