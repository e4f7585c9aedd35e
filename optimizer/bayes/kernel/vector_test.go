package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// tables returns points of the given numbers of columns, with categories from 0 to 2.
func tables(t *rapid.T) (x, y table, rng *rand.Rand) {
	rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	numeric, categorical := rapid.IntRange(0, 6).Draw(t, "numeric"), rapid.IntRange(0, 3).Draw(t, "categorical")
	if numeric+categorical == 0 {
		numeric = 1
	}
	l := newLayout(append(Continuous(numeric), slices.Repeat([]Column{{Categorical: true}}, categorical)...))
	points := func(n int) table {
		m := mat.NewDense(n, numeric+categorical, nil)
		for i := range n {
			for c := range numeric {
				m.Set(i, c, rng.NormFloat64())
			}
			for c := range categorical {
				m.Set(i, numeric+c, float64(rng.IntN(3)))
			}
		}
		return l.newTable(m, slices.Repeat([]float64{3}, numeric), -0.5)
	}
	return points(rapid.IntRange(1, 5).Draw(t, "n")), points(rapid.IntRange(1, 70).Draw(t, "m")), rng
}

func normals(n int, rng *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// A row of one element is computed without vectors.
func TestRowsOfVectorsAreTheirElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, rng := tables(t)
		i, from := rng.IntN(x.n), rng.IntN(y.n)
		weights := normals(x.categorical, rng)
		for k := range weights {
			weights[k] *= weights[k]
		}
		row, one := make([]float64, y.n-from), make([]float64, 1)
		distances(row, &x, i, &y, from, weights, -1.7)
		for j := range row {
			if distances(one, &x, i, &y, from+j, weights, -1.7); one[0] != row[j] {
				t.Errorf("distance %d: %v in a row, %v alone", j, row[j], one[0])
			}
		}
		e := normals(len(row), rng)
		covariances := slices.Clone(row)
		matern52.covariances(covariances, e, 0.9)
		for j := range row {
			one[0] = row[j]
			if matern52.covariances(one, e[j:j+1], 0.9); one[0] != covariances[j] {
				t.Errorf("covariance %d: %v in a row, %v alone", j, covariances[j], one[0])
			}
		}
		products(row, &x, i, &y, from, 1.3)
		for j := range row {
			if products(one, &x, i, &y, from+j, 1.3); one[0] != row[j] {
				t.Errorf("product %d: %v in a row, %v alone", j, row[j], one[0])
			}
		}
	})
}

func TestSumsOfVectorsAreThoseOfGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, rng := tables(t)
		i := rng.IntN(x.n)
		g := normals(y.stride, rng)
		clear(g[y.n:])
		got, want := make([]float64, x.numeric+x.categorical), make([]float64, x.numeric+x.categorical)
		moments(got, g, &x, i, &y)
		momentsGo(want, g, &x, i, &y)
		if !slices.Equal(got, want) {
			t.Errorf("moments %v, without vectors %v", got, want)
		}
		var sum float64
		for j := range y.n {
			sum += g[j] * (x.data[i] - y.data[j])
		}
		if x.numeric > 0 && !(math.Abs(want[0]-sum) <= 1e-12*float64(y.n)) {
			t.Errorf("a moment of %v, want %v", want[0], sum)
		}

		v, e := normals(y.stride, rng), normals(y.stride, rng)
		plain, lanes := slices.Clone(v), [4]float64{}
		total := matern52.slopes(v, e, g)
		matern52.slopesGo(plain, e, g, &lanes)
		if sum := (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]); !slices.Equal(v, plain) || total != sum {
			t.Errorf("slopes with sum %v, without vectors %v", total, sum)
		}
	})
}
