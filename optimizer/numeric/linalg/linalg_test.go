package linalg_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

func random(rows, cols int, rng *rand.Rand) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
	return m
}

// positive returns a well-conditioned positive definite matrix.
func positive(n int, rng *rand.Rand) *mat.SymDense {
	var a mat.SymDense
	a.SymOuterK(1/float64(n), random(n, n, rng))
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+1)
	}
	return &a
}

func TestCholeskyAgainstGonum(t *testing.T) {
	sizes := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(60, 70), rapid.IntRange(120, 200))
	rapid.Check(t, func(r *rapid.T) {
		n, m := sizes.Draw(r, "n"), rapid.IntRange(1, 70).Draw(r, "m")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		a, b := positive(n, rng), random(n, m, rng)
		var c linalg.Cholesky
		if err := c.Factorize(a); err != nil {
			t.Fatal(err)
		}
		var oracle mat.Cholesky
		if !oracle.Factorize(a) {
			t.Fatal("gonum finds the matrix not positive definite")
		}
		if c.Jitter() != 0 || math.Abs(c.LogDet()-oracle.LogDet()) > 1e-11*float64(n) {
			t.Errorf("jitter %v, log determinant %v; want 0, %v", c.Jitter(), c.LogDet(), oracle.LogDet())
		}
		var lower mat.TriDense
		oracle.LTo(&lower)
		check := func(what string, got, want mat.Matrix) {
			if !mat.EqualApprox(got, want, 1e-10) {
				t.Errorf("%s differs for n=%d, m=%d", what, n, m)
			}
		}
		var want mat.Dense
		if err := want.Solve(&lower, b); err != nil {
			t.Fatal(err)
		}
		got, vector := mat.DenseCopyOf(b), mat.Col(nil, 0, b)
		c.SolveL(got.RawMatrix())
		c.SolveLVec(vector)
		check("L⁻¹b", got, &want)
		check("L⁻¹b of a vector", mat.NewVecDense(n, vector), want.ColView(0))
		check("L·L⁻¹b of a vector", mat.NewVecDense(n, c.MulL(vector)), b.ColView(0))

		if err := want.Solve(lower.T(), b); err != nil {
			t.Fatal(err)
		}
		got, vector = mat.DenseCopyOf(b), mat.Col(nil, 0, b)
		c.SolveLT(got.RawMatrix())
		c.SolveLTVec(vector)
		check("L⁻ᵀb", got, &want)
		check("L⁻ᵀb of a vector", mat.NewVecDense(n, vector), want.ColView(0))

		inverse, wantInverse := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
		if err := oracle.InverseTo(wantInverse); err != nil {
			t.Fatal(err)
		}
		c.Inverse(inverse)
		check("the inverse", inverse, wantInverse)
	})
}

func TestCholeskyIsReusable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	var c linalg.Cholesky
	for _, n := range []int{100, 7, 64, 130} {
		a, inverse := positive(n, rng), mat.NewSymDense(n, nil)
		if err := c.Factorize(a); err != nil {
			t.Fatal(err)
		}
		c.Inverse(inverse)
		var product mat.Dense
		product.Mul(a, inverse)
		identity := mat.NewDiagDense(n, nil)
		for i := range n {
			identity.SetDiag(i, 1)
		}
		if !mat.EqualApprox(&product, identity, 1e-11) {
			t.Errorf("n=%d: A·A⁻¹ is not the identity", n)
		}
	}
}

func TestJitter(t *testing.T) {
	ones := mat.NewSymDense(80, nil)
	for i := range 80 {
		for j := range i + 1 {
			ones.SetSym(i, j, 4)
		}
	}
	var c linalg.Cholesky
	if err := c.Factorize(ones); err != nil {
		t.Fatal(err)
	}
	if c.Jitter() <= 0 || c.Jitter() > 4e-8 {
		t.Errorf("a matrix of ones needed jitter %v", c.Jitter())
	}
	nan := mat.NewSymDense(3, nil)
	nan.SetSym(0, 1, math.NaN())
	for name, a := range map[string]*mat.SymDense{
		"indefinite": mat.NewSymDense(2, []float64{1, 2, 2, 1}),
		"zero":       mat.NewSymDense(2, nil),
		"not finite": nan,
		"infinite":   mat.NewSymDense(1, []float64{math.Inf(1)}),
	} {
		if err := c.Factorize(a); !errors.Is(err, linalg.ErrNotPositiveDefinite) {
			t.Errorf("%s: error %v, want ErrNotPositiveDefinite", name, err)
		}
	}
}

func TestSubtractGramAgainstGonum(t *testing.T) {
	sizes := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(60, 70), rapid.IntRange(120, 300))
	rapid.Check(t, func(r *rapid.T) {
		n, terms := sizes.Draw(r, "n"), rapid.IntRange(1, 200).Draw(r, "terms")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		got, v := positive(n, rng), linalg.NewColumns(terms, n)
		for i := range v.Data {
			v.Data[i] = rng.NormFloat64() // beyond the n columns, too
		}
		columns := mat.NewDense(v.Rows, v.Stride, v.Data).Slice(0, terms, 0, n)
		var gram, want mat.Dense
		gram.Mul(columns.T(), columns)
		want.Sub(got, &gram)
		linalg.SubtractGram(got, v)
		if !mat.EqualApprox(got, &want, 1e-10) {
			t.Errorf("n=%d, %d terms: A − vᵀv differs", n, terms)
		}
	})
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	a, b := positive(203, rng), random(203, 150, rng)
	run := func(cores int) (*mat.SymDense, *mat.Dense) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		var c linalg.Cholesky
		if err := c.Factorize(a); err != nil {
			t.Fatal(err)
		}
		inverse, solved := mat.NewSymDense(203, nil), mat.DenseCopyOf(b)
		c.Inverse(inverse)
		c.SolveL(solved.RawMatrix())
		c.SolveLT(solved.RawMatrix())
		linalg.SubtractGram(inverse, mat.DenseCopyOf(a).RawMatrix())
		return inverse, solved
	}
	inverse1, solved1 := run(1)
	inverse3, solved3 := run(3)
	if !mat.Equal(inverse1, inverse3) || !mat.Equal(solved1, solved3) {
		t.Error("the number of cores changes the result")
	}
}

func TestRowsAgainstTheirDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows, cols := rapid.IntRange(0, 40).Draw(r, "rows"), rapid.IntRange(1, 40).Draw(r, "cols")
		used := rapid.IntRange(0, cols).Draw(r, "used")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		m := blas64.General{Rows: rows, Cols: cols, Stride: cols + 1, Data: mat.Col(nil, 0, random(rows*(cols+1)+1, 1, rng))}
		factors, sums, squares := make([]float64, rows), make([]float64, used), make([]float64, used)
		for i := range factors {
			factors[i] = rng.NormFloat64()
		}
		wantSums, wantSquares := make([]float64, used), make([]float64, used)
		for j := range used {
			sums[j], squares[j] = rng.NormFloat64(), rng.NormFloat64()
			wantSums[j], wantSquares[j] = sums[j], squares[j]
			for i, factor := range factors {
				v := m.Data[i*m.Stride+j]
				wantSums[j] = math.FMA(factor, v, wantSums[j])
				wantSquares[j] = math.FMA(v, v, wantSquares[j])
			}
		}
		linalg.AddRows(sums, factors, m)
		linalg.AddSquares(squares, m)
		if !slices.Equal(sums, wantSums) || !slices.Equal(squares, wantSquares) {
			t.Errorf("%d×%d: sums %v, want %v; of squares %v, want %v", rows, used, sums, wantSums, squares, wantSquares)
		}
	})
}

func TestParallelCoversTheRangeOnce(t *testing.T) {
	for _, n := range []int{0, 1, 7, 16, 100} {
		var total, calls atomic.Int64
		seen := make([]atomic.Int32, n)
		linalg.Parallel(n, 8, func(chunk, lo, hi int) {
			if lo != chunk*8 || hi > n || hi-lo > 8 {
				t.Errorf("chunk %d is [%d, %d)", chunk, lo, hi)
			}
			calls.Add(1)
			for i := lo; i < hi; i++ {
				seen[i].Add(1)
				total.Add(1)
			}
		})
		if int(calls.Load()) != linalg.Chunks(n, 8) || int(total.Load()) != n {
			t.Errorf("n=%d: %d calls covered %d indices", n, calls.Load(), total.Load())
		}
		for i := range seen {
			if seen[i].Load() != 1 {
				t.Errorf("n=%d: index %d seen %d times", n, i, seen[i].Load())
			}
		}
	}
}

func BenchmarkCholesky(b *testing.B) {
	for _, n := range []int{32, 128, 512, 1000, 1024} {
		a := positive(n, rand.New(rand.NewPCG(1, 0)))
		inverse := mat.NewSymDense(n, nil)
		right := mat.NewDense(n, 128, nil)
		var c linalg.Cholesky
		var oracle mat.Cholesky
		cube := float64(n) * float64(n) * float64(n) / 1e9
		for _, op := range []struct {
			name  string
			flops float64 // billions
			f     func()
		}{
			{"factorize", cube / 3, func() { _ = c.Factorize(a) }},
			{"factorize-gonum", cube / 3, func() { oracle.Factorize(a) }},
			{"inverse", cube * 2 / 3, func() { c.Inverse(inverse) }},
			{"solve128", 128 * float64(n) * float64(n) / 1e9, func() { c.SolveL(right.RawMatrix()) }},
		} {
			b.Run(fmt.Sprintf("%s/n=%d", op.name, n), func(b *testing.B) {
				for b.Loop() {
					op.f()
				}
				b.ReportMetric(op.flops*float64(b.N)/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

// What is allocated is a closure for each parallel loop, on one core.
func TestAllocations(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	rng := rand.New(rand.NewPCG(1, 0))
	const n, blocks = 131, 3
	a, inverse, b, v := positive(n, rng), mat.NewSymDense(n, nil), linalg.NewColumns(n, 70), make([]float64, n)
	var c linalg.Cholesky
	for _, op := range []struct {
		name  string
		loops float64
		f     func()
	}{
		{"Factorize", blocks, func() { _ = c.Factorize(a) }},
		{"Inverse", 2, func() { c.Inverse(inverse) }},
		{"SolveL", 1, func() { c.SolveL(b) }},
		{"SolveLT", 1, func() { c.SolveLT(b) }},
		{"SolveLVec", 0, func() { c.SolveLVec(v) }},
		{"SolveLTVec", 0, func() { c.SolveLTVec(v) }},
	} {
		if count := testing.AllocsPerRun(5, op.f); count > op.loops {
			t.Errorf("%s: %v allocations, want %v", op.name, count, op.loops)
		}
	}
}
