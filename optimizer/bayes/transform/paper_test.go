package transform

import (
	"math"
	"testing"
)

// The transform of HEBO's paper, against SciPy 1.17: boxcox or yeojohnson of the outcomes
// over their standard deviation, as scikit-learn's power_transform calls them, standardised.
func TestPaperAgainstSciPy(t *testing.T) {
	for name, c := range map[string]struct {
		kind    Kind
		y, want []float64
	}{
		"positive": {
			KindBoxCox, []float64{0.5, 1, 2, 4, 9, 20, 45, 70, 3, 1.5},
			[]float64{-1.558708, -1.008507, -0.505557, -0.0458, 0.442211, 0.875169, 1.271339, 1.470304, -0.231619, -0.708833},
		},
		"of both signs": {
			KindYeoJohnson, []float64{-2, 0.5, 1, 2, 4, 9, 20, -1, 3, 1.5},
			[]float64{-1.699687, -0.436991, -0.265262, 0.025018, 0.459498, 1.10926, 1.76273, -1.104138, 0.261861, -0.112289},
		},
		"negative": { // λ is 3.85
			KindYeoJohnson, []float64{-9, -4, -3, -8, -1, -2, -6, -2.5, -3.5, -30},
			[]float64{-0.928608, 0.082711, 0.453023, -0.79555, 1.568519, 0.932225, -0.444724, 0.676516, 0.256493, -1.800605},
		},
	} {
		got := Paper(c.y)
		z := make([]float64, len(c.y))
		got.Apply(z, c.y)
		for i, want := range c.want {
			// SciPy divides by the sd with n degrees of freedom first, so that λ differs slightly for
			// Yeo-Johnson.
			if math.Abs(z[i]-want) > 0.02 {
				t.Errorf("%s: outcome %v becomes %.4f, by SciPy %.4f", name, c.y[i], z[i], want)
			}
		}
		if got.Kind() != c.kind {
			t.Errorf("%s: the transform is %s, want %s", name, got.Kind(), c.kind)
		}
	}
	for name, y := range map[string][]float64{"no": {}, "one": {3}, "equal": {2, 2, 2, 2, 2}} {
		if got := Paper(y).Kind(); got != KindStandard {
			t.Errorf("%s outcomes have the transform %s, want %s", name, got, KindStandard)
		}
	}
}
