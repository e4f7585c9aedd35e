package nsga2_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// problem makes one of a function of a point, whose features are its coordinates.
func problem(variables []nsga2.Variable, objectives int, f func(dst, x []float64)) nsga2.Problem {
	return nsga2.Problem{
		Variables: variables, Objectives: objectives, Features: len(variables),
		Describe: func(dst, x *mat.Dense) { dst.Copy(x) },
		Score: func(dst, x *mat.Dense) {
			rows, _ := x.Dims()
			for i := range rows {
				f(dst.RawRowView(i), x.RawRowView(i))
			}
		},
	}
}

// usual returns the options of a suggestion.
func usual() nsga2.Options { return nsga2.Options{Population: 100, Generations: 100} }

// zdt returns ZDT1, ZDT2 or ZDT3 of d variables (Zitzler, Deb and Thiele 2000).
func zdt(name string, d int) nsga2.Problem {
	return problem(make([]nsga2.Variable, d), 2, func(dst, x []float64) {
		var sum float64
		for _, v := range x[1:] {
			sum += v
		}
		g := 1 + 9*sum/float64(d-1)
		part := x[0] / g
		dst[0] = x[0]
		switch name {
		case "zdt1":
			dst[1] = g * (1 - math.Sqrt(part))
		case "zdt2":
			dst[1] = g * (1 - part*part)
		case "zdt3":
			dst[1] = g * (1 - math.Sqrt(part) - part*math.Sin(10*math.Pi*x[0]))
		}
	})
}

// hypervolume returns the area that the points dominate below (reference, reference).
func hypervolume(f *mat.Dense, reference float64) float64 {
	rows, _ := f.Dims()
	points := make([][]float64, rows)
	for i := range points {
		points[i] = f.RawRowView(i)
	}
	slices.SortFunc(points, slices.Compare)
	area, lowest := 0.0, reference
	for _, p := range points {
		if p[0] < reference && p[1] < lowest {
			area += (reference - p[0]) * (lowest - p[1])
			lowest = p[1]
		}
	}
	return area
}

func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return (sorted[(len(v)-1)/2] + sorted[len(v)/2]) / 2
}

// testdata/zdt.py made the figures with pymoo.
func TestHypervolumeIsThatOfPymoo(t *testing.T) {
	data, err := os.ReadFile("testdata/zdt.json")
	if err != nil {
		t.Fatal(err)
	}
	var figures map[string][]struct {
		Evaluations  int       `json:"evaluations"`
		Hypervolumes []float64 `json:"hypervolumes"`
	}
	if err := json.Unmarshal(data, &figures); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"zdt1", "zdt2", "zdt3"} {
		for _, peer := range figures[name] {
			var volumes []float64
			seeds := uint64(7)
			if peer.Evaluations > 15_000 { // the more it has converged, the less seeds differ
				seeds = 3
			}
			for seed := range seeds {
				found, err := nsga2.Minimize(
					t.Context(), zdt(name, 30), nsga2.Options{Population: 100, Generations: peer.Evaluations / 100}, source(seed),
				)
				if err != nil {
					t.Fatal(err)
				}
				volumes = append(volumes, hypervolume(found.F, 1.1))
			}
			got, want := median(volumes), median(peer.Hypervolumes)
			t.Logf("%s after %d evaluations: %.4f, pymoo %.4f", name, peer.Evaluations, got, want)
			if got < 0.99*want {
				t.Errorf("%s after %d evaluations: hypervolume %.4f, want 99%% of pymoo's %.4f", name, peer.Evaluations, got, want)
			}
		}
	}
}

func TestSameSeedSameBits(t *testing.T) {
	variables := []nsga2.Variable{{}, {Levels: 5, Categorical: true}, {}, {Levels: 7}}
	p := problem(variables, 3, func(dst, x []float64) {
		dst[0], dst[1], dst[2] = x[0]*x[0]+x[3], math.Abs(x[1]-x[2]), math.Sin(9*x[2])-x[0]
	})
	search := func(seed uint64) *nsga2.Population {
		found, err := nsga2.Minimize(t.Context(), p, nsga2.Options{Population: 40, Generations: 30}, source(seed))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := search(5)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	got := search(5)
	if !mat.Equal(got.X, want.X) || !mat.Equal(got.F, want.F) || !slices.Equal(got.Rank, want.Rank) {
		t.Error("the same seed found something else")
	}
	if mat.Equal(search(6).X, want.X) {
		t.Error("another seed found the same")
	}
}

// The first objective prefers category 3 and the second category 6 of 8. The columns
// agree only in those two, so two points form the Pareto front.
func TestCategoricalColumns(t *testing.T) {
	const levels, columns = 8, 6
	variables := slices.Repeat([]nsga2.Variable{{Levels: levels, Categorical: true}}, columns)
	p := problem(variables, 2, func(dst, x []float64) {
		dst[0], dst[1] = 0, 0
		for _, v := range x {
			category := v*levels - 0.5
			if category != math.Trunc(category) || category < 0 || category >= levels {
				t.Errorf("a category at %g", v)
			}
			if category != 3 {
				dst[0]++
			}
			if category != 6 {
				dst[1]++
			}
		}
	})
	found, err := nsga2.Minimize(t.Context(), p, usual(), source(1))
	if err != nil {
		t.Fatal(err)
	}
	// The front is (k, 6−k) for k = 0…6.
	var got []float64
	for _, i := range found.Front() {
		if sum := found.F.At(i, 0) + found.F.At(i, 1); sum != columns {
			t.Errorf("(%g, %g) is in the front", found.F.At(i, 0), found.F.At(i, 1))
		}
		got = append(got, found.F.At(i, 0))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]float64{0, 1, 2, 3, 4, 5, 6}, slices.Compact(got)); diff != "" {
		t.Errorf("first objectives in the front (-want +got):\n%s", diff)
	}
}

// A mixed problem with a known minimum: x = (0.7, level 2 of 4, category 1 of 3).
func TestMixedColumns(t *testing.T) {
	variables := []nsga2.Variable{{}, {Levels: 4}, {Levels: 3, Categorical: true}}
	p := problem(variables, 1, func(dst, x []float64) {
		dst[0] = math.Abs(x[0]-0.7) + math.Abs(x[1]-2.5/4)
		if x[2] != 1.5/3 {
			dst[0]++
		}
	})
	found, err := nsga2.Minimize(t.Context(), p, nsga2.Options{Population: 30, Generations: 60}, source(2))
	if err != nil {
		t.Fatal(err)
	}
	best := found.X.RawRowView(found.Front()[0])
	if math.Abs(best[0]-0.7) > 1e-3 || best[1] != 2.5/4 || best[2] != 1.5/3 {
		t.Errorf("minimum at %v, want (0.7, 0.625, 0.5)", best)
	}
}

// Repair snaps to a grid of tenths and allows only x + y ≤ 1.
func TestRepairedPointsAreFeasible(t *testing.T) {
	snap := func(v float64) float64 { return math.Round(v*10) / 10 }
	p := problem([]nsga2.Variable{{}, {Levels: 11}}, 2, func(dst, x []float64) {
		if x[0] != snap(x[0]) || x[1] != snap(x[1]) || x[0]+x[1] > 1 {
			t.Errorf("%v was evaluated", x)
		}
		dst[0], dst[1] = -x[0], -x[1]
	})
	p.Repair = func(x []float64) bool {
		x[0], x[1] = snap(x[0]), snap(x[1])
		return x[0]+x[1] <= 1
	}
	found, err := nsga2.Minimize(
		t.Context(), p, nsga2.Options{Population: 100, Generations: 100, Initial: mat.NewDense(2, 2, []float64{1, 1, 0.22, 0.31})}, source(3),
	)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := found.X.Dims()
	if rows != 66 { // 11·12/2, all there are
		t.Errorf("%d points, want all 66", rows)
	}
	if got := len(found.Front()); got != 11 {
		t.Errorf("%d in the front, want the 11 on x + y = 1", got)
	}
}

func TestNothingFeasible(t *testing.T) {
	p := zdt("zdt1", 3)
	p.Repair = func([]float64) bool { return false }
	if found, err := nsga2.Minimize(t.Context(), p, usual(), source(4)); !errors.Is(err, nsga2.ErrInfeasible) || found != nil {
		t.Errorf("%v, %v, want ErrInfeasible", found, err)
	}
}

func TestInitialPointsAreKeptWhileTheyAreGood(t *testing.T) {
	best := make([]float64, 30) // on the front of ZDT1
	best[0] = 0.25
	o := nsga2.Options{Population: 20, Generations: 1, Initial: mat.NewDense(2, 30, append(slices.Clone(best), best...))}
	found, err := nsga2.Minimize(t.Context(), zdt("zdt1", 30), o, source(5))
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	for i := range 20 {
		if slices.Equal(found.X.RawRowView(i), best) {
			times++
			if found.Rank[i] != 0 || found.F.At(i, 0) != 0.25 || found.F.At(i, 1) != 0.5 {
				t.Errorf("rank %d, objectives %v", found.Rank[i], found.F.RawRowView(i))
			}
		}
	}
	if times != 1 {
		t.Errorf("%d times in the population, want once", times)
	}
}

// With pure noise and no re-evaluation, the survivors keep the luck of all draws; with
// it, only that of the last.
func TestReevaluateForgetsLuck(t *testing.T) {
	mean := func(again bool) float64 {
		noise := source(6)
		p := problem(make([]nsga2.Variable, 4), 1, func(dst, _ []float64) { dst[0] = noise.NormFloat64() })
		found, err := nsga2.Minimize(t.Context(), p, nsga2.Options{Population: 50, Generations: 100, Reevaluate: again}, source(7))
		if err != nil {
			t.Fatal(err)
		}
		return mat.Sum(found.F) / 50
	}
	// The best half of 100 draws has mean −φ(0)/½ = −0.80, the best 50 of 5,000
	// about −2.67.
	if fresh := mean(true); math.Abs(fresh+0.80) > 0.25 {
		t.Errorf("evaluated anew, the mean is %.2f, want about −0.80", fresh)
	}
	if kept := mean(false); math.Abs(kept+2.67) > 0.25 {
		t.Errorf("kept, the mean is %.2f, want about −2.67", kept)
	}
}

// A point is described once, however often it is scored.
func TestFeatures(t *testing.T) {
	p := zdt("zdt1", 4)
	var described, scored int
	describe, score := p.Describe, p.Score
	p.Describe = func(dst, x *mat.Dense) {
		rows, _ := x.Dims()
		described += rows
		describe(dst, x)
	}
	p.Score = func(dst, features *mat.Dense) {
		rows, _ := features.Dims()
		scored += rows
		score(dst, features)
	}
	if _, err := nsga2.Minimize(t.Context(), p, nsga2.Options{Population: 20, Generations: 10, Reevaluate: true}, source(1)); err != nil {
		t.Fatal(err)
	}
	if described != 20*10 || scored != 20+40*9 {
		t.Errorf("%d points described and %d scored, want 200 and 380", described, scored)
	}
}

func TestBadObjectives(t *testing.T) {
	p := problem(make([]nsga2.Variable, 2), 2, func(dst, x []float64) {
		dst[0], dst[1] = x[0], -math.Log(max(x[1]-0.5, 0)) // +Inf for a half of all
		if x[0] < 0.3 {
			dst[0] = math.NaN()
		}
		if x[0] > 0.9 {
			dst[1] = math.Inf(-1)
		}
	})
	found, err := nsga2.Minimize(t.Context(), p, nsga2.Options{Population: 20, Generations: 20}, source(8))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		for _, v := range append(slices.Clone(found.F.RawRowView(i)), found.Crowding[i]) {
			if math.IsNaN(v) {
				t.Errorf("NaN at %v: %v, %g", found.X.RawRowView(i), found.F.RawRowView(i), found.Crowding[i])
			}
		}
		if x := found.X.RawRowView(i); !(x[0] >= 0.3 || found.Rank[i] > 0) {
			t.Errorf("NaN at %v is in the front", x)
		}
	}
}

func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	generations := 0
	p := zdt("zdt1", 5)
	score := p.Score
	p.Score = func(dst, x *mat.Dense) {
		if generations++; generations == 3 {
			cancel()
		}
		score(dst, x)
	}
	found, err := nsga2.Minimize(ctx, p, usual(), source(9))
	if !errors.Is(err, context.Canceled) || found == nil || generations != 3 {
		t.Errorf("%v after %d generations with a population %v, want context.Canceled after 3 with one", err, generations, found != nil)
	}
	if found, err := nsga2.Minimize(ctx, p, usual(), source(9)); !errors.Is(err, context.Canceled) || found != nil {
		t.Errorf("ended before: %v, %v", found, err)
	}
}

func TestNoAllocationPerGeneration(t *testing.T) {
	p := zdt("zdt1", 9)
	allocations := func(generations int) float64 {
		return testing.AllocsPerRun(3, func() {
			if _, err := nsga2.Minimize(t.Context(), p, nsga2.Options{Population: 50, Generations: generations}, source(1)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(2), allocations(60); many > few {
		t.Errorf("%g allocations in 2 generations, %g in 60", few, many)
	}
}

// As in a suggestion: 100 generations of 100 points in 9 columns, three objectives
// that cost nothing.
func BenchmarkMinimize(b *testing.B) {
	p := problem(make([]nsga2.Variable, 9), 3, func(dst, x []float64) {
		dst[0], dst[1], dst[2] = x[0]+x[3], x[1]-x[0]*x[4], x[2]-x[1]*x[5]
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nsga2.Minimize(b.Context(), p, usual(), source(1)); err != nil {
			b.Fatal(err)
		}
	}
}
