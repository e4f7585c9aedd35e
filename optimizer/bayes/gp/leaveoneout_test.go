package gp_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// A left-out observation is predicted as by a model without it.
func TestLeaveOneOut(t *testing.T) {
	const n, d, noise = 25, 3, 0.02
	x, y := sample(n, d, 1)
	k, h := kernel.NewMatern52(kernel.Continuous(d)), hyper(1.3, noise, 0.3, 0.5, 1)
	m, err := gp.Condition(k, h, x, y)
	if err != nil {
		t.Fatal(err)
	}
	residual, variance := m.LeaveOneOut()
	var wantResidual, wantVariance []float64
	for i := range n {
		rest, others := mat.NewDense(n-1, d, nil), make([]float64, 0, n-1)
		for j := range n {
			if j != i {
				rest.SetRow(len(others), x.RawRowView(j))
				others = append(others, y[j])
			}
		}
		without, err := gp.Condition(k, h, rest, others)
		if err != nil {
			t.Fatal(err)
		}
		mean, v := without.Posterior(x.Slice(i, i+1, 0, d))
		wantResidual = append(wantResidual, y[i]-mean[0])
		wantVariance = append(wantVariance, v[0]+noise)
	}
	near(t, "residual", residual, wantResidual, 1e-10)
	near(t, "variance", variance, wantVariance, 1e-10)
}
