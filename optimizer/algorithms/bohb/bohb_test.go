package bohb

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func defaults(t testing.TB) Options { return FromSettings(optimizertest.Defaults(t, Settings())) }

func TestConformance(t *testing.T) {
	optimizertest.Run(t, func() optimizer.Optimizer { return New(defaults(t)) })
}

// TestDensitiesOfStatsmodels compares densities and bandwidths with those of statsmodels'
// KDEMultivariate; see testdata/densities.py.
func TestDensitiesOfStatsmodels(t *testing.T) {
	text, err := os.ReadFile("testdata/densities.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Kinds            string
		Data, Points     [][]float64
		Reference, Width []float64
		Densities        []float64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*max(1e-3, math.Abs(want)) }
	for _, c := range cases {
		columns := make([]column, len(c.Kinds))
		for k, letter := range c.Kinds {
			columns[k].kind = map[rune]kind{'c': continuous, 'u': unordered, 'o': ordered}[letter]
			columns[k].Levels = 5
		}
		for k, got := range reference(c.Data) {
			if !near(got, c.Reference[k]) {
				t.Errorf("%s: bandwidth %d is %v; want %v", c.Kinds, k, got, c.Reference[k])
			}
		}
		d := &density{columns: columns, data: c.Data, width: c.Width, levels: levels(columns, c.Data)}
		for i, p := range c.Points {
			if got := d.at(p); !near(got, c.Densities[i]) {
				t.Errorf("%s: density at %v is %v; want %v", c.Kinds, p, got, c.Densities[i])
			}
		}
	}
	if len(cases) < 7 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestTruncated compares draws with the truncated normal distribution's mean, which for a
// range that is symmetric around m is m, and for the upper half is m + sd·√(2/π).
func TestTruncated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ m, sd, want float64 }{{0.5, 0.2, 0.5}, {0, 0.01, 0.01 * math.Sqrt(2/math.Pi)},
		{1, 0.01, 1 - 0.01*math.Sqrt(2/math.Pi)}} {
		sum := 0.0
		const n = 20000
		for range n {
			x := truncated(c.m, c.sd, rng)
			if x < 0 || x > 1 {
				t.Fatalf("drew %g", x)
			}
			sum += x
		}
		if mean := sum / n; math.Abs(mean-c.want) > 5*c.sd/math.Sqrt(n) {
			t.Errorf("around %g: the mean is %g; want %g", c.m, mean, c.want)
		}
	}
}

// TestSearchesNearGoodPoints checks that the points approach a minimum, with 8 at once as
// well as one by one. Of n uniform points in the cube, the squared distance of the best is
// Γ(5/3)·(3/(4πn))^(2/3) in the mean: 0.0161 for 100. A third of the points are uniform.
func TestSearchesNearGoodPoints(t *testing.T) {
	for _, parallelism := range []int{1, 8} {
		var sum float64
		const seeds = 5
		for seed := range uint64(seeds) {
			s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, 3, 0, 1), seed)
			s.Run(100, parallelism, func(p study.Point) float64 {
				var sum float64
				for _, v := range p {
					sum += (v.(float64) - 0.7) * (v.(float64) - 0.7)
				}
				return sum
			})
			sum += s.Best()
		}
		if mean := sum / seeds; mean > 0.0161 {
			t.Errorf("%d at once: the best of 100 points has %.4f in the mean, want under 0.0161", parallelism, mean)
		}
	}
}

// TestAShareIsRandom checks that a third of the points ignores the model.
func TestAShareIsRandom(t *testing.T) {
	s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, 2, 0, 1), 1)
	s.Run(20, 1, func(p study.Point) float64 { return p["x1"].(float64) })
	random := 0
	const n = 600
	for _, b := range s.Ask(n) {
		if b.Source == optimizer.SourceRandom {
			random++
		}
	}
	if share := float64(random) / n; math.Abs(share-1.0/3) > 4*math.Sqrt(2.0/9/n) {
		t.Errorf("%.3f of the points are random; want 1/3", share)
	}
}
