package vecmath

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// A fixture is an argument with the exact result, from testdata/fixtures.py.
type fixture struct {
	x, rounded float64
	rest       float64 // exact minus rounded, in units of rounded's last place
}

func fixtures(t *testing.T, name string) []fixture {
	t.Helper()
	file, err := os.Open("testdata/fixtures.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []fixture
	for _, row := range rows {
		if row[0] != name {
			continue
		}
		var v [3]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(row[i+1], 64); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, fixture{v[0], v[1], v[2]})
	}
	if len(all) < 1000 {
		t.Fatalf("found only %d fixtures of %s", len(all), name)
	}
	return all
}

// errorOf returns how far got is from the exact result, in units in the last
// place.
func (f fixture) errorOf(got float64) float64 {
	size := math.Abs(f.rounded)
	ulp := math.Nextafter(size, math.Inf(1)) - size
	if math.IsInf(ulp, 1) {
		ulp = size - math.Nextafter(size, 0)
	}
	return math.Abs((got-f.rounded)/ulp - f.rest)
}

// functions lists the vector functions, their scalar versions, and the largest errors
// stated in their comments.
var functions = []struct {
	name             string
	vector           func(dst, x []float64)
	scalar           func(float64) float64
	bound, subnormal float64
}{
	{"exp", Exp, exp, 0.7, 1},
	{"log", Log, log, 0.8, 0},
}

func TestAgainstMpmath(t *testing.T) {
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			all := fixtures(t, f.name)
			x, got := make([]float64, len(all)), make([]float64, len(all))
			for i, c := range all {
				x[i] = c.x
			}
			f.vector(got, x)
			var worst float64
			for i, c := range all {
				bound := f.bound
				if f.subnormal > 0 && c.rounded < minNormal {
					bound = f.subnormal
				} else {
					worst = max(worst, c.errorOf(got[i]))
				}
				if e := c.errorOf(got[i]); !(e <= bound) {
					t.Errorf("%s(%v) = %v, %.3f units from %v", f.name, c.x, got[i], e, c.rounded)
				}
			}
			t.Logf("largest error %.3f", worst)
		})
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, f := range functions {
		for _, c := range map[string][][2]float64{
			"exp": {
				{0, 1}, {math.Copysign(0, -1), 1}, {inf, inf}, {-inf, 0}, {nan, nan}, {5e-324, 1}, {-5e-324, 1},
				{709.782712893384, math.MaxFloat64}, {709.7827128933841, inf}, {1e308, inf}, {710, inf},
				{-745.1332191019411, 5e-324}, {-745.1332191019412, 0}, {-746, 0}, {-1e308, 0},
			},
			"log": {
				{1, 0}, {0, -inf}, {math.Copysign(0, -1), -inf}, {inf, inf}, {-inf, nan}, {nan, nan},
				{-1, nan}, {-5e-324, nan}, {-math.MaxFloat64, nan},
			},
		}[f.name] {
			// At each place of a vector, between ordinary values.
			for place := range 9 {
				x := []float64{2, 2, 2, 2, 2, 2, 2, 2, 2}
				x[place] = c[0]
				f.vector(x, x)
				if f.name == "exp" && c[1] == math.MaxFloat64 {
					// The result's own rounding is not tested here.
					if x[place] < 0.99*c[1] || math.IsInf(x[place], 1) {
						t.Errorf("exp(%v) = %v", c[0], x[place])
					}
				} else if !same(x[place], c[1]) {
					t.Errorf("%s(%v) = %v, want %v", f.name, c[0], x[place], c[1])
				}
				x = slices.Delete(x, place, place+1)
				if two := f.scalar(2); slices.ContainsFunc(x, func(v float64) bool { return v != two }) {
					t.Errorf("%s(%v) at %d disturbs others: %v", f.name, c[0], place, x)
				}
			}
		}
	}
}

// same reports whether a and b are the same bits, or both NaN.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// arbitrary returns a float64 of random bits, or of a random size.
func arbitrary(rng *rand.Rand) float64 {
	switch rng.IntN(4) {
	case 0:
		return math.Float64frombits(rng.Uint64())
	case 1:
		return 1000 * rng.NormFloat64()
	case 2:
		return rng.NormFloat64()
	}
	return math.Exp(300 * rng.NormFloat64())
}

func TestVectorIsScalar(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 5000 {
		x := make([]float64, rng.IntN(40))
		for i := range x {
			x[i] = arbitrary(rng)
		}
		checkVector(t, x)
	}
}

// checkVector compares the vector functions with the scalar ones, bit for bit, and
// checks that they do not write beyond their vectors.
func checkVector(t *testing.T, x []float64) {
	t.Helper()
	for _, f := range functions {
		memory := make([]float64, len(x)+2)
		memory[0], memory[len(x)+1] = 7, 7
		dst := memory[1 : len(x)+1]
		f.vector(dst, x)
		for i, v := range x {
			if want := f.scalar(v); !same(dst[i], want) {
				t.Fatalf("%s(%v) = %v at %d of %d, want %v", f.name, v, dst[i], i, len(x), want)
			}
		}
		if memory[0] != 7 || memory[len(x)+1] != 7 {
			t.Fatalf("%s of %d elements wrote beyond them", f.name, len(x))
		}
		inPlace := slices.Clone(x)
		f.vector(inPlace, inPlace)
		if !slices.EqualFunc(inPlace, dst, same) {
			t.Fatalf("%s in place gives %v, want %v", f.name, inPlace, dst)
		}
	}
}

func FuzzVectorIsScalar(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef0123456789abcdef"))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		var x []float64
		for ; len(data) >= 8; data = data[8:] {
			var bits uint64
			for _, b := range data[:8] {
				bits = bits<<8 | uint64(b)
			}
			x = append(x, math.Float64frombits(bits))
		}
		checkVector(t, x)
	})
}

func TestLengthsMustAgree(t *testing.T) {
	for _, f := range functions {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of 2 elements into 3 does not panic", f.name)
				}
			}()
			f.vector(make([]float64, 3), make([]float64, 2))
		}()
	}
}

func TestNoAllocation(t *testing.T) {
	x, dst := []float64{1, 2, 3, 4, 5, 0, 7}, make([]float64, 7)
	for _, f := range functions {
		if n := testing.AllocsPerRun(10, func() { f.vector(dst, x) }); n != 0 {
			t.Errorf("%s allocates %v times", f.name, n)
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	x, dst := make([]float64, 1024), make([]float64, 1024)
	rng := rand.New(rand.NewPCG(1, 0))
	for i := range x {
		x[i] = 20 * rng.Float64()
	}
	each := func(f func(float64) float64) func(dst, x []float64) {
		return func(dst, x []float64) {
			for i, v := range x {
				dst[i] = f(v)
			}
		}
	}
	for _, c := range []struct {
		name string
		f    func(dst, x []float64)
	}{
		{"Exp", Exp}, {"Exp-scalar", each(exp)}, {"Exp-math", each(math.Exp)},
		{"Log", Log}, {"Log-scalar", each(log)}, {"Log-math", each(math.Log)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f(dst, x)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/element")
		})
	}
}
