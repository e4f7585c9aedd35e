package gp

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/design"
)

// Normals returns q×draws standard normal numbers for Fantasies.Draw: each
// column is a point of a scrambled Sobol sequence of q dimensions, mapped by
// the normal quantile function. With two draws or more every row is shifted to
// mean 0, so that the fantasies' average mean is the posterior mean. For more
// points than the sequence has dimensions they are pseudo-random.
func Normals(q, draws int, seed uint64) *mat.Dense {
	z := mat.NewDense(q, draws, nil)
	sobol, err := design.NewScrambledSobol(q, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	u := make([]float64, q)
	for s := range draws {
		if err == nil {
			sobol.At(u, uint32(s))
		}
		for i := range q {
			if err != nil {
				u[i] = rng.Float64()
			}
			// Half of the sequence's resolution keeps the quantile finite.
			z.Set(i, s, distuv.UnitNormal.Quantile(u[i]+0x1p-53))
		}
	}
	if draws > 1 {
		for i := range q {
			row := z.RawRowView(i)
			floats.AddConst(-floats.Sum(row)/float64(draws), row)
		}
	}
	return z
}
