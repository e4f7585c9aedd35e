package testfunc_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
)

func get(t *testing.T, name string) testfunc.Function {
	t.Helper()
	f, err := testfunc.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestNoiseIsReproducible(t *testing.T) {
	f, x := get(t, "branin"), []float64{1, 2}
	one, two, other := f.Noisy(3, 7), f.Noisy(3, 7), f.Noisy(3, 8)
	// In another order, and beside other observations.
	second, first := two.Observe(x, 1), two.Observe(x, 0)
	if a, b := one.Observe(x, 0), one.Observe(x, 1); a != first || b != second || a == b {
		t.Errorf("evaluations 0 and 1 gave %v and %v, then %v and %v", a, b, first, second)
	}
	if a, b := one.Observe(x, 0), other.Observe(x, 0); a == b {
		t.Errorf("seeds 7 and 8 both gave %v", a)
	}
	if got, want := f.Noisy(0, 7).Observe(x, 0), f.Value(x); got != want {
		t.Errorf("without noise %v, want %v", got, want)
	}
}

// Over 10,000 evaluations of each of two seeds the mean, the variance, the kurtosis,
// the correlation of neighbours and that of the seeds are a standard normal's, each
// within five of its standard errors.
func TestNoiseIsStandardNormal(t *testing.T) {
	f, x := get(t, "branin"), []float64{1, 2}
	const n, sd = 10000, 2.5
	draw := func(seed uint64) []float64 {
		z := make([]float64, n)
		for i := range z {
			z[i] = (f.Noisy(sd, seed).Observe(x, uint64(i)) - f.Value(x)) / sd
		}
		return z
	}
	z, w := draw(1), draw(2)
	var mean, variance, fourth, neighbours, seeds float64
	for i, v := range z {
		mean += v / n
		variance += v * v / n
		fourth += v * v * v * v / n
		neighbours += v * z[(i+1)%n] / n
		seeds += v * w[i] / n
	}
	for _, c := range []struct {
		what            string
		got, want, unit float64
	}{
		{"mean", mean, 0, 1},
		{"variance", variance, 1, math.Sqrt2},
		{"fourth moment", fourth, 3, math.Sqrt(96)},
		{"product of neighbours", neighbours, 0, 1},
		{"product of seeds", seeds, 0, 1},
	} {
		if math.Abs(c.got-c.want) > 5*c.unit/math.Sqrt(n) {
			t.Errorf("%s %v, want %v within %v", c.what, c.got, c.want, 5*c.unit/math.Sqrt(n))
		}
	}
}

func TestHeteroscedastic(t *testing.T) {
	f := get(t, "branin")
	noisy := f.Heteroscedastic(func(x []float64) float64 { return 1 + x[1] }, 3)
	// The same draw, with another deviation.
	a, b := []float64{0, 0}, []float64{0, 4}
	za, zb := noisy.Observe(a, 5)-f.Value(a), noisy.Observe(b, 5)-f.Value(b)
	if math.Abs(zb-5*za) > 1e-9 || za == 0 || noisy.SD(b) != 5 {
		t.Errorf("the noise is %v where its deviation is 1, and %v where it is %v", za, zb, noisy.SD(b))
	}
}

func TestImpossibleDeviationsPanic(t *testing.T) {
	f := get(t, "branin")
	for _, sd := range []float64{-1, math.NaN(), math.Inf(1)} {
		for what, call := range map[string]func(){
			"Noisy":           func() { f.Noisy(sd, 0) },
			"Heteroscedastic": func() { f.Heteroscedastic(func([]float64) float64 { return sd }, 0).Observe([]float64{0, 0}, 0) },
		} {
			if message := panicOf(call); !strings.Contains(message, "branin") || !strings.Contains(message, "at least 0") {
				t.Errorf("%s with deviation %v panicked with %q", what, sd, message)
			}
		}
	}
	if message := panicOf(func() { f.Noisy(1, 0).Observe([]float64{1}, 0) }); !strings.Contains(message, "takes 2 coordinates, got 1") {
		t.Errorf("a point of one coordinate panicked with %q", message)
	}
	if x := []float64{1, 2}; f.Noisy(1, 0).Observe(x, 0) == f.Value(x) || !slices.Equal(x, []float64{1, 2}) {
		t.Errorf("observing changed the point to %v, or there was no noise", x)
	}
}
