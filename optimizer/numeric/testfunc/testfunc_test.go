package testfunc_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
)

func TestMinimisersGiveTheMinimum(t *testing.T) {
	for _, f := range testfunc.All() {
		if len(f.Minimisers) == 0 {
			t.Errorf("%s has no minimiser", f.Name)
		}
		for _, x := range f.Minimisers {
			if !feasible(f, x) {
				t.Errorf("%s: the minimiser %v is infeasible", f.Name, x)
			}
			if got := f.Value(x); math.Abs(got-f.Minimum) > 1e-9 {
				t.Errorf("%s(%v) = %.17g, want the minimum %.17g", f.Name, x, got, f.Minimum)
			}
			for i, v := range x {
				if v < f.Lower[i] || v > f.Upper[i] {
					t.Errorf("%s: the minimiser %v is outside the domain", f.Name, x)
				}
			}
		}
	}
}

// The digits come from BoTorch's documentation, evalset and the papers' tables; their
// number varies.
func TestMinimaAsPublished(t *testing.T) {
	for name, want := range map[string]struct{ minimum, within float64 }{
		"branin":                         {0.397887, 1e-6},
		"branin02":                       {5.559, 1e-3},
		"hartmann3":                      {-3.86278, 1e-5},
		"hartmann6":                      {-3.32237, 1e-5},
		"shubert01":                      {-186.7309, 1e-4},
		"weierstrass-8":                  {112, 1e-3},
		"cross-in-tray":                  {-2.06261, 1e-5},
		"holder-table":                   {-19.2085, 1e-4},
		"egg-holder":                     {-959.6407, 1e-4},
		"six-hump-camel":                 {-1.0316, 1e-4},
		"styblinski-tang-10":             {-391.66166, 1e-5},
		"michalewicz-2":                  {-1.80130341, 1e-8},
		"michalewicz-5":                  {-4.687658, 1e-6},
		"michalewicz-10":                 {-9.66015, 1e-5},
		"cosine-mixture-10":              {-0.63012202176, 1e-10},
		"deflected-corrugated-spring-10": {-1, 0},
		"deceptive-2":                    {-1, 0},
		"h1":                             {-2, 1e-6},
		"drop-wave":                      {-1, 0},
	} {
		f, err := testfunc.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(f.Minimum-want.minimum) > want.within {
			t.Errorf("%s: minimum %v, published %v", name, f.Minimum, want.minimum)
		}
	}
}

func feasible(f testfunc.Function, x []float64) bool { return f.Feasible == nil || f.Feasible(x) }

// The shares of random points that are feasible: a disk's by its area, a
// half-space's as the constraints were made, the others' by 10⁶ points in NumPy.
func TestFeasibleShares(t *testing.T) {
	for name, want := range map[string]float64{
		"branin-disk": 50 * math.Pi / 225, "gardner-1": 0.6652, "gardner-2": 0.0177, "gramacy": 0.4576,
		"hartmann6-crash": 2. / 3, "levy-5-crash": 2. / 3,
	} {
		f, err := testfunc.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		const n = 20_000
		inside := 0
		rng := rand.New(rand.NewPCG(1, 2))
		for range n {
			u := make([]float64, f.Dim())
			for i := range u {
				u[i] = rng.Float64()
			}
			if f.Feasible(f.Scale(u)) {
				inside++
			}
		}
		if got := float64(inside) / n; math.Abs(got-want) > 0.012 {
			t.Errorf("%s: %.4f of the domain is feasible, want %.4f", name, got, want)
		}
	}
}

func TestNamesAreUniqueAndSorted(t *testing.T) {
	names := testfunc.Names()
	if !slices.IsSorted(names) {
		t.Errorf("names are not sorted: %v", names)
	}
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("%d names of %d are unique", len(unique), len(names))
	}
	for _, f := range testfunc.All() {
		if f.Title == "" || f.Source == "" {
			t.Errorf("%s: title %q, source %q, want both", f.Name, f.Title, f.Source)
		}
		if f.Name != strings.ToLower(f.Name) || strings.ContainsAny(f.Name, " _") {
			t.Errorf("%q is not a lower-case name with hyphens", f.Name)
		}
	}
}

func TestGet(t *testing.T) {
	f, err := testfunc.Get("branin")
	if err != nil || f.Name != "branin" || f.Dim() != 2 {
		t.Errorf("Get(branin) = %s, %d-D, %v", f.Name, f.Dim(), err)
	}
	_, err = testfunc.Get("brannin")
	if !errors.Is(err, testfunc.ErrUnknown) || !strings.Contains(err.Error(), `"brannin"`) ||
		!strings.Contains(err.Error(), "branin, branin-disk") {
		t.Errorf("Get(brannin): %v, want ErrUnknown with the name and the names there are", err)
	}
}

func TestSuites(t *testing.T) {
	// The sizes: Table 3 of the paper and the clean exponential; four functions;
	// sixteen functions in 2-D, eight in 5-D and 10-D, five in 1-D.
	for name, size := range map[string]int{"lgp": 19, "uhe": 4, "pt": 16 + 8 + 8 + 5, "constrained": 6, "standard": 8} {
		got, err := testfunc.Suite(name)
		if err != nil || len(got) != size {
			t.Errorf("Suite(%s) has %d functions, want %d (%v)", name, len(got), size, err)
		}
	}
	if got := testfunc.Suites(); !slices.Equal(got, []string{"constrained", "lgp", "pt", "standard", "uhe"}) {
		t.Errorf("Suites() = %v", got)
	}
	if _, err := testfunc.Suite("all"); !errors.Is(err, testfunc.ErrUnknown) ||
		!strings.Contains(err.Error(), "constrained, lgp, pt, standard, uhe") {
		t.Errorf("Suite(all): %v, want ErrUnknown with the suites there are", err)
	}
}

func TestScale(t *testing.T) {
	for _, f := range testfunc.All() {
		zero, one := make([]float64, f.Dim()), slices.Repeat([]float64{1}, f.Dim())
		if got := f.Scale(zero); !slices.Equal(got, f.Lower) {
			t.Errorf("%s: 0 is scaled to %v, want %v", f.Name, got, f.Lower)
		}
		if got := f.Scale(one); !slices.Equal(got, f.Upper) {
			t.Errorf("%s: 1 is scaled to %v, want %v", f.Name, got, f.Upper)
		}
	}
	branin, err := testfunc.Get("branin")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := branin.Scale([]float64{0.5, 0.2}), []float64{2.5, 3}; !slices.Equal(got, want) {
		t.Errorf("Scale(0.5, 0.2) = %v, want %v", got, want)
	}
}

// corners returns the corners of f's domain, at most 2¹² of them.
func corners(f testfunc.Function) [][]float64 {
	all := make([][]float64, 0, 1<<f.Dim())
	for bits := range 1 << f.Dim() {
		u := make([]float64, f.Dim())
		for i := range u {
			u[i] = float64(bits >> i & 1)
		}
		all = append(all, f.Scale(u))
	}
	return all
}

func TestFiniteAndNotLowerAtCornersAndOnDiagonals(t *testing.T) {
	for _, f := range testfunc.All() {
		points := corners(f)
		for i := range 1001 {
			points = append(points, f.Scale(slices.Repeat([]float64{float64(i) / 1000}, f.Dim())))
		}
		for _, x := range points {
			before := slices.Clone(x)
			y := f.Value(x)
			if math.IsNaN(y) || math.IsInf(y, 0) || y < f.Minimum-1e-9 && feasible(f, x) {
				t.Errorf("%s(%v) = %v, want a finite value of at least %v", f.Name, x, y, f.Minimum)
			}
			if !slices.Equal(before, x) {
				t.Fatalf("%s changed %v to %v", f.Name, before, x)
			}
		}
	}
}

func TestWrongLengthPanics(t *testing.T) {
	for _, f := range testfunc.All() {
		for _, n := range []int{0, f.Dim() - 1, f.Dim() + 1} {
			for what, call := range map[string]func(){
				"Value": func() { f.Value(make([]float64, n)) }, "Scale": func() { f.Scale(make([]float64, n)) },
			} {
				if message := panicOf(call); !strings.Contains(message, f.Name) || !strings.Contains(message, "coordinates") {
					t.Errorf("%s.%s of %d coordinates panicked with %q, want its name and dimension", f.Name, what, n, message)
				}
			}
		}
	}
}

// panicOf returns what call panicked with, or nothing.
func panicOf(call func()) (message string) {
	defer func() {
		if s, ok := recover().(string); ok {
			message = s
		}
	}()
	call()
	return ""
}

func TestAllIsFresh(t *testing.T) {
	for _, f := range testfunc.All() {
		f.Lower[0], f.Upper[0], f.Minimisers[0][0] = math.NaN(), math.NaN(), math.NaN()
	}
	for _, f := range testfunc.All() {
		if math.IsNaN(f.Lower[0] + f.Upper[0] + f.Minimisers[0][0]) {
			t.Errorf("%s shares its slices with an earlier answer", f.Name)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for _, f := range testfunc.All() {
		x := f.Scale(slices.Repeat([]float64{0.3}, f.Dim()))
		want := f.Value(x)
		for range 4 {
			wg.Go(func() {
				for range 20 {
					if got := f.Value(x); got != want {
						t.Errorf("%s(%v) = %v and %v", f.Name, x, want, got)
					}
				}
			})
		}
	}
	wg.Wait()
}

// The corrupted functions have no value at the upper bound that the points beside it lack.
// There the corruption is 0: it is that in the second half of each quarter.
func TestCorruptionIsHalfOpen(t *testing.T) {
	for name, corner := range map[string]float64{
		"corrupted-exponential-8": -math.Exp(-8 * 0.2 * 0.2 / 2),
		// |sin x₁ cos x₂ exp|1 − r/π|| at (10, 10).
		"corrupted-holder-table": -math.Abs(math.Sin(10) * math.Cos(10) * math.Exp(math.Abs(1-math.Sqrt(200)/math.Pi))),
	} {
		f, err := testfunc.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		u := slices.Repeat([]float64{1}, f.Dim())
		if got := f.Value(f.Scale(u)); math.Abs(got-corner) > 1e-12*math.Abs(corner) {
			t.Errorf("%s is %v in the upper corner, want %v, as without corruption", name, got, corner)
		}
		beside := slices.Repeat([]float64{1 - 1e-9}, f.Dim())
		if got := f.Value(f.Scale(beside)); math.Abs(got-corner) > 1e-6*math.Abs(corner) {
			t.Errorf("%s is %v beside the upper corner, %v in it", name, got, corner)
		}
	}
}
