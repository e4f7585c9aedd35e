package curves

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

func TestGrid(t *testing.T) {
	if got, want := Grid(51), []int64{4, 5, 6, 7, 9, 11, 13, 15, 18, 22, 26, 32, 38, 45, 51}; !slices.Equal(got, want) {
		t.Errorf("the grid of 51 steps is %v, want %v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Int64Range(1, 1<<40).Draw(t, "last")
		grid := Grid(last)
		if grid[0] < 1 || grid[len(grid)-1] != last || len(grid) > 16 {
			t.Errorf("the grid of %d steps is %v", last, grid)
		}
		for i := 1; i < len(grid); i++ {
			if grid[i] <= grid[i-1] {
				t.Errorf("the grid of %d steps does not grow: %v", last, grid)
			}
		}
	})
}

// walks returns curves of random configurations: a level that depends on the configuration, and a
// fall towards it.
func walks(n int, last int64, rng *rand.Rand) []Curve {
	list := make([]Curve, n)
	for i := range list {
		x := []float64{rng.Float64(), rng.Float64()}
		level := (x[0]-0.3)*(x[0]-0.3) + 0.2*x[1]
		list[i] = Curve{X: x, Runs: i%5 == 0}
		for s := int64(1); s <= 1+rng.Int64N(last); s++ {
			list[i].Reports = append(list[i].Reports, Report{s, level + 0.5/float64(s) + 0.0003*rng.NormFloat64()})
		}
	}
	return list
}

// The model reads each curve at the grid and at its end, as the best cost so far.
func TestPointsAreTheBestCostsSoFar(t *testing.T) {
	nan := math.NaN()
	c := []Curve{
		{Reports: []Report{{1, nan}, {2, 5}, {3, 4}, {4, 6}, {6, 3}}},
		{},
		{Reports: []Report{{1, nan}}},
	}
	want := []point{{0, 2, 5}, {0, 4, 4}, {0, 6, 3}, {2, 1, math.Inf(1)}}
	if got := points(c, []int64{2, 4, 8}, 100); !slices.Equal(got, want) {
		t.Errorf("the points are %v, want %v", got, want)
	}
}

// Of many points, the best curves and those that run keep all of theirs, and the others their last.
func TestPointsAreBounded(t *testing.T) {
	c := walks(120, 40, rand.New(rand.NewPCG(1, 0)))
	whole, few := points(c, Grid(40), 1<<20), points(c, Grid(40), mostPoints)
	if len(whole) <= mostPoints {
		t.Fatalf("%d points are not many", len(whole))
	}
	count := func(list []point, trial int) (n int) {
		for _, p := range list {
			if p.trial == trial {
				n++
			}
		}
		return n
	}
	for i := range c {
		if n := count(few, i); n != 1 && n != count(whole, i) || c[i].Runs && n != count(whole, i) {
			t.Errorf("curve %d has %d of %d points", i, n, count(whole, i))
		}
	}
	if len(few) > mostPoints {
		t.Errorf("%d points are left of %d", len(few), len(whole))
	}
}

// Costs keep their order, good ones their distances up to a factor, and of bad ones only the order
// counts.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		all := make([]point, rapid.IntRange(1, 40).Draw(t, "n"))
		for i := range all {
			all[i] = point{trial: i, cost: math.Round(8*rng.NormFloat64()) / 4}
			if rng.IntN(5) == 0 && i > 0 {
				all[i].cost = math.Inf(1)
			}
		}
		stretched := slices.Clone(all)
		s := newScale(all)
		for i, p := range all {
			if p.cost > s.median {
				stretched[i].cost = math.Exp(p.cost) + 100
			} else {
				stretched[i].cost = 10 * p.cost
			}
		}
		other := newScale(stretched)
		for i, p := range all {
			z := s.of(p.cost)
			if math.IsNaN(z) || math.IsInf(z, 0) {
				t.Fatalf("the score of %v is %v", p.cost, z)
			}
			if !math.IsInf(s.median, 1) && s.median <= 0 && math.Abs(z-other.of(stretched[i].cost)) > 1e-12 {
				t.Errorf("the score of %v is %v, stretched %v", p.cost, z, other.of(stretched[i].cost))
			}
			for _, q := range all {
				if p.cost < q.cost && !math.IsInf(s.median, 1) && z >= s.of(q.cost) {
					t.Errorf("%v has the score %v, and %v has %v", p.cost, z, q.cost, s.of(q.cost))
				}
			}
		}
	})
}

// The posterior is that of the textbook: with K the matrix of the kernel's definition,
//
//	mean = kᵀ(K + σ²I)⁻¹z,  variance = k(x, x) − kᵀ(K + σ²I)⁻¹k
//
// (Rasmussen and Williams, equations 2.25 and 2.26), here by gonum's own solver.
func TestPosteriorAgainstItsDefinition(t *testing.T) {
	const last = 30
	c := walks(12, last, rand.New(rand.NewPCG(3, 0)))
	for i := range c {
		c[i].Runs = false
	}
	h := gp.Hyperparameters{Kernel: []float64{-0.5, 0.2, 0, 0.1, -0.9, -2, -0.3}, Noise: 3e-3}
	m, err := New(t.Context(), kernel.Continuous(2), c, last, &h, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	covariance := func(a, b []float64) float64 {
		r := math.Sqrt(5 * (math.Pow((a[0]-b[0])/math.Exp(h.Kernel[0]), 2) + math.Pow((a[1]-b[1])/math.Exp(h.Kernel[1]), 2)))
		kappa := math.Exp(-math.Abs(a[2]-b[2]) / math.Exp(h.Kernel[6]))
		k := (1 + r + r*r/3) * math.Exp(-r) * (math.Exp(h.Kernel[3]) + math.Exp(h.Kernel[4])*kappa)
		if a[3] == b[3] {
			k += math.Exp(h.Kernel[5]) * kappa
		}
		return k
	}
	list := points(c, Grid(last), mostPoints)
	n := len(list)
	gram, z, rows := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil), make([][]float64, n)
	for i, p := range list {
		rows[i] = append(slices.Clone(c[p.trial].X), math.Log(1+float64(p.step))/math.Log(1+last), float64(p.trial))
		z.SetVec(i, m.scale.of(p.cost))
	}
	for i := range n {
		for j := range n {
			gram.Set(i, j, covariance(rows[i], rows[j]))
		}
		gram.Set(i, i, gram.At(i, i)+h.Noise)
	}
	check := func(what string, e Expected, at []float64) {
		t.Helper()
		k, solved := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			k.SetVec(i, covariance(rows[i], at))
		}
		if err := solved.SolveVec(gram, k); err != nil {
			t.Fatal(err)
		}
		mean, variance := mat.Dot(solved, z), covariance(at, at)-mat.Dot(solved, k)
		if math.Abs(e.Mean-mean) > 1e-8 || math.Abs(e.SD*e.SD-variance) > 1e-8 {
			t.Errorf("%s: %v ± %v, want %v ± %v", what, e.Mean, e.SD, mean, math.Sqrt(variance))
		}
	}
	o := m.Outlook()
	for i, e := range o.Curves([]int{0, 5, 11}) {
		trial := []int{0, 5, 11}[i]
		check("a trial", e, append(slices.Clone(c[trial].X), 1, float64(trial)))
	}
	fresh := []float64{0.4, 0.9}
	check("a new one", o.Fresh([][]float64{fresh})[0], append(slices.Clone(fresh), 1, 99))
}

// A trial that runs leaves less to be known of those that are like it, and moves no mean.
func TestOutlookCountsWhatRuns(t *testing.T) {
	c := walks(20, 30, rand.New(rand.NewPCG(4, 0)))
	for i := range c {
		c[i].Runs = false
	}
	outlook := func() []Expected {
		m, err := New(t.Context(), kernel.Continuous(2), c, 30, nil, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.Outlook().Fresh([][]float64{c[7].X})
	}
	alone := outlook()[0]
	c[7].Runs = true
	beside := outlook()[0]
	if math.Abs(beside.Mean-alone.Mean) > 1e-9 || beside.SD > 0.9*alone.SD {
		t.Errorf("a place is %v, and %v while a trial runs there", alone, beside)
	}
}

// A fit learns from curves how others end: it explains nine tenths of how held-out ends differ.
func TestFitPredictsHowCurvesEnd(t *testing.T) {
	const last = 40
	rng := rand.New(rand.NewPCG(5, 0))
	c := walks(40, last, rng)
	var heldOut []int
	var ends []float64
	for i := range c {
		c[i].Runs = false
		// The configuration decides where it begins, and chance how it goes on, ever downwards.
		cost, whole, reported := (c[i].X[0]-0.3)*(c[i].X[0]-0.3)+0.2*c[i].X[1], i%2 == 0, 1+rng.Int64N(8)
		c[i].Reports = nil
		for s := int64(1); s <= last; s++ {
			cost -= 0.05 * rng.Float64() * (math.Log1p(float64(s)) - math.Log1p(float64(s-1)))
			if whole || s <= reported {
				c[i].Reports = append(c[i].Reports, Report{s, cost})
			}
		}
		if !whole {
			heldOut, ends = append(heldOut, i), append(ends, cost)
		}
	}
	m, err := New(t.Context(), kernel.Continuous(2), c, last, nil, true, rng)
	if err != nil {
		t.Fatal(err)
	}
	var squares, plain float64
	for k, e := range m.Outlook().Curves(heldOut) {
		z := m.scale.of(ends[k])
		squares, plain = squares+(e.Mean-z)*(e.Mean-z), plain+z*z
	}
	if squares > 0.1*plain {
		t.Errorf("the sum of squared errors is %.3f, that of the ends %.3f", squares, plain)
	}
}

func TestModelsAreReproducible(t *testing.T) {
	c := walks(60, 40, rand.New(rand.NewPCG(6, 0)))
	expected := func() []Expected {
		m, err := New(t.Context(), kernel.Continuous(2), c, 40, nil, true, rand.New(rand.NewPCG(7, 0)))
		if err != nil {
			t.Fatal(err)
		}
		return m.Outlook().Curves([]int{1, 2, 3})
	}
	if a, b := expected(), expected(); !slices.Equal(a, b) {
		t.Errorf("the same curves gave %v and %v", a, b)
	}
}

func TestFitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := walks(20, 20, rand.New(rand.NewPCG(8, 0)))
	if _, err := New(ctx, kernel.Continuous(2), c, 20, nil, true, rand.New(rand.NewPCG(9, 0))); err == nil {
		t.Error("a fit whose context has ended returned no error")
	}
}

func BenchmarkDecision(b *testing.B) {
	rng := rand.New(rand.NewPCG(10, 0))
	c := walks(200, 50, rng)
	fresh := make([][]float64, 256)
	for i := range fresh {
		fresh[i] = []float64{rng.Float64(), rng.Float64()}
	}
	for _, fit := range []bool{false, true} {
		b.Run(map[bool]string{false: "conditioned", true: "fitted"}[fit], func(b *testing.B) {
			for b.Loop() {
				m, err := New(b.Context(), kernel.Continuous(2), c, 50, nil, fit, rng)
				if err != nil {
					b.Fatal(err)
				}
				m.Outlook().Fresh(fresh)
			}
		})
	}
}
