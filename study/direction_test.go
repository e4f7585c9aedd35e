package study_test

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestBetter(t *testing.T) {
	nan, infinite := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		a, b               float64
		minimize, maximize bool
	}{
		{1, 2, true, false},
		{2, 1, false, true},
		{1, 1, false, false},
		{0, math.Copysign(0, -1), false, false},
		{-infinite, 1, true, false},
		{infinite, 1, false, true},
		{nan, 1, false, false},
		{1, nan, false, false},
		{nan, nan, false, false},
	} {
		if got := study.Minimize.Better(tt.a, tt.b); got != tt.minimize {
			t.Errorf("minimize: %v is better than %v: %t", tt.a, tt.b, got)
		}
		if got := study.Maximize.Better(tt.a, tt.b); got != tt.maximize {
			t.Errorf("maximize: %v is better than %v: %t", tt.a, tt.b, got)
		}
	}
}

func TestBest(t *testing.T) {
	nan, infinite := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		values             []float64
		minimize, maximize int
	}{
		{nil, -1, -1},
		{[]float64{nan, nan}, -1, -1},
		{[]float64{3}, 0, 0},
		{[]float64{3, 1, 5, 1, 5}, 1, 2},
		{[]float64{nan, 2, nan, 4, nan}, 1, 3},
		{[]float64{infinite, infinite}, 0, 0},
		{[]float64{nan, infinite, -infinite}, 2, 1},
	} {
		if got := study.Minimize.Best(tt.values); got != tt.minimize {
			t.Errorf("the least of %v is that at %d, want %d", tt.values, got, tt.minimize)
		}
		if got := study.Maximize.Best(tt.values); got != tt.maximize {
			t.Errorf("the greatest of %v is that at %d, want %d", tt.values, got, tt.maximize)
		}
	}
}

// The lower cost is the better value, and applying Cost again gives the value back.
func TestCost(t *testing.T) {
	values := []float64{-2.5, 0, 1e308, math.Inf(-1)}
	for _, d := range []study.Direction{study.Minimize, study.Maximize} {
		for _, a := range values {
			if got := d.Cost(d.Cost(a)); got != a {
				t.Errorf("%s: the cost of the cost of %v is %v", d, a, got)
			}
			for _, b := range values {
				if (d.Cost(a) < d.Cost(b)) != d.Better(a, b) {
					t.Errorf("%s: costs %v and %v of %v and %v", d, d.Cost(a), d.Cost(b), a, b)
				}
			}
		}
	}
}
