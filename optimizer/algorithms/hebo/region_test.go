package hebo

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

func TestTrustRegionFindsTheMinimum(t *testing.T) {
	o := New(options(func(o *Options) { o.TrustRegion = true }))
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 5)
	s.Run(40, 4, bowl)
	if best := s.Best(); best > 1e-4 {
		t.Errorf("the best value is %.3g, the minimum 0", best)
	}
}
