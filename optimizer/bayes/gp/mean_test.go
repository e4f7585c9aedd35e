package gp_test

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

func TestMeanIsThePosteriors(t *testing.T) {
	x, y := sample(60, 3, 1)
	at, _ := sample(200, 3, 2)
	m, err := gp.Condition(kernel.NewMatern52([]kernel.Column{{}, {Snap: grid(4)}, {Categorical: true}}), hyper(1.3, 0.02, 0.3, 0.5, 1), x, y)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := m.Posterior(at)
	near(t, "mean", m.Mean(at), want, 1e-10)
}
