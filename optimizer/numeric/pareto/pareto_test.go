package pareto_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// Volumes of moocore and pymoo, which testdata/hypervolume.py wrote.
func TestHypervolumeLikeMoocore(t *testing.T) {
	data, err := os.ReadFile("testdata/hypervolume.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Shape     string
		Points    [][]float64
		Reference []float64
		Volume    float64
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got := pareto.Hypervolume(c.Points, c.Reference)
		if math.Abs(got-c.Volume) > 1e-12*max(1, c.Volume) {
			t.Errorf("%s, %d objectives: %.17g, want %.17g", c.Shape, len(c.Reference), got, c.Volume)
		}
	}
	if len(cases) < 28 {
		t.Errorf("%d cases", len(cases))
	}
}

// side is the length of the grids below. All points have whole coordinates, so that each
// cell of a grid is dominated as a whole or not at all.
const side = 4

// drawPoints draws points of a grid, and its upper corner.
func drawPoints(t *rapid.T, objectives int) (points [][]float64, reference []float64) {
	coordinate := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, side+1).Draw(t, "coordinate")) })
	points = rapid.SliceOfN(rapid.SliceOfN(coordinate, objectives, objectives), 0, 12).Draw(t, "points")
	return points, slices.Repeat([]float64{side}, objectives)
}

// cells calls visit with the middle of each cell of the grid.
func cells(objectives int, visit func(middle []float64)) {
	middle := make([]float64, objectives)
	for cell := range int(math.Pow(side, float64(objectives))) {
		for i := range middle {
			middle[i] = float64(cell%side) + 0.5
			cell /= side
		}
		visit(middle)
	}
}

func TestHypervolumeCountsCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objectives := rapid.IntRange(1, 4).Draw(t, "objectives")
		points, reference := drawPoints(t, objectives)
		want := 0.0
		cells(objectives, func(middle []float64) {
			if slices.ContainsFunc(points, func(p []float64) bool { return pareto.Dominates(p, middle) }) {
				want++
			}
		})
		if got := pareto.Hypervolume(points, reference); got != want {
			t.Fatalf("%v: volume %v, want %v", points, got, want)
		}
	})
}

// Each cell that no point dominates lies in one box, the others in none. What lies outside
// of the grid to the left counts as its first cells do.
func TestBoxesAreWhatIsOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objectives := rapid.IntRange(1, 4).Draw(t, "objectives")
		points, reference := drawPoints(t, objectives)
		boxes := pareto.Boxes(points, reference)
		cells(objectives, func(middle []float64) {
			for _, shift := range []float64{0, -1} {
				z := slices.Clone(middle)
				z[0] += shift
				in := 0
				for _, b := range boxes {
					if within(z, b) {
						in++
					}
				}
				want := 1
				if slices.ContainsFunc(points, func(p []float64) bool { return pareto.Dominates(p, z) }) {
					want = 0
				}
				if in != want {
					t.Fatalf("%v: %v lies in %d of the boxes %v, want %d", points, z, in, boxes, want)
				}
			}
		})
	})
}

func within(z []float64, b pareto.Box) bool {
	for i, v := range z {
		if v < b.Low[i] || v >= b.High[i] {
			return false
		}
	}
	return true
}

func TestFrontByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points, _ := drawPoints(t, rapid.IntRange(1, 4).Draw(t, "objectives"))
		var want []int
		for i, p := range points {
			if !slices.ContainsFunc(points, func(q []float64) bool { return pareto.Dominates(q, p) }) {
				want = append(want, i)
			}
		}
		if got := pareto.Front(points); !slices.Equal(got, want) {
			t.Fatalf("%v: front %v, want %v", points, got, want)
		}
	})
}

// The counts that the comments promise.
func TestFewBoxes(t *testing.T) {
	for objectives, most := range map[int]int{2: 51, 3: 300} {
		points, reference := sphere(50, objectives)
		if n := len(pareto.Boxes(points, reference)); n < 50 || n > most {
			t.Errorf("%d objectives, 50 points: %d boxes, want at most %d", objectives, n, most)
		}
	}
}

func TestNaNCountsForNothing(t *testing.T) {
	points, reference := [][]float64{{math.NaN(), 0}, {0.5, 0.5}, {0, math.NaN()}}, []float64{1, 1}
	if v := pareto.Hypervolume(points, reference); v != 0.25 {
		t.Errorf("volume %v", v)
	}
	if b := pareto.Boxes(points, reference); len(b) != 2 {
		t.Errorf("boxes %v", b)
	}
}

// sphere returns points of a front that has no point below another.
func sphere(n, objectives int) (points [][]float64, reference []float64) {
	rng := rand.New(rand.NewPCG(1, uint64(objectives)))
	for range n {
		p, norm := make([]float64, objectives), 0.0
		for i := range p {
			p[i] = math.Abs(rng.NormFloat64())
			norm = math.Hypot(norm, p[i])
		}
		for i := range p {
			p[i] = 1 - p[i]/norm
		}
		points = append(points, p)
	}
	return points, slices.Repeat([]float64{1.1}, objectives)
}

func BenchmarkHypervolume(b *testing.B) {
	for _, objectives := range []int{2, 3, 4, 6, 8} {
		points, reference := sphere(50, objectives)
		b.Run(fmt.Sprintf("objectives=%d/points=50", objectives), func(b *testing.B) {
			for b.Loop() {
				pareto.Hypervolume(points, reference)
			}
		})
	}
}

func BenchmarkBoxes(b *testing.B) {
	for _, objectives := range []int{2, 3, 4} {
		points, reference := sphere(50, objectives)
		b.Run(fmt.Sprintf("objectives=%d/points=50", objectives), func(b *testing.B) {
			var boxes []pareto.Box
			for b.Loop() {
				boxes = pareto.Boxes(points, reference)
			}
			b.ReportMetric(float64(len(boxes)), "boxes")
		})
	}
}

func ExampleHypervolume() {
	front := [][]float64{{1, 3}, {2, 1}}
	fmt.Println(pareto.Hypervolume(front, []float64{4, 4}))
	for _, b := range pareto.Boxes(front, []float64{4, 4}) {
		fmt.Println(b.Low, b.High)
	}
	// Output:
	// 7
	// [-Inf 3] [1 4]
	// [-Inf -Inf] [4 1]
	// [-Inf 1] [2 3]
}
