package view_test

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/view"
)

// Numbers of a few digits have no exponent unless they are very large or very small, also as a standard
// deviation.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{1670.4, 3, "1670"}, {999.6, 3, "1000"}, {0.36, 3, "0.36"}, {12345678, 3, "12300000"}, {-1234, 2, "-1200"}, {0, 3, "0"},
		{0.00012345, 3, "0.000123"}, {1.5e-7, 3, "1.5e-07"}, {1.5e12, 3, "1.5e+12"}, {math.Inf(1), 3, "+Inf"}, {math.NaN(), 3, "NaN"},
	} {
		if got := view.Short(c.v, c.digits); got != c.want {
			t.Errorf("%v with %d digits is %s, want %s", c.v, c.digits, got, c.want)
		}
	}
	if got, want := view.Expected(18034, 1234), "18034 ± 1200"; got != want {
		t.Errorf("an expected value is shown as %s, want %s", got, want)
	}
}
