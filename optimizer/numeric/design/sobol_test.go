package design_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
)

// scipyCase holds points that testdata/sobol.py computed with SciPy, in units of 2^-32.
type scipyCase struct {
	Dim    int        `json:"dim"`
	Start  uint32     `json:"start"`
	Points [][]uint32 `json:"points"`
}

func TestUnscrambledAgainstSciPy(t *testing.T) {
	data, err := os.ReadFile("testdata/sobol.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []scipyCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		s, err := design.NewSobol(c.Dim)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, c.Dim)
		for i, want := range c.Points {
			s.At(got, c.Start+uint32(i))
			for j := range want {
				if got[j] != float64(want[j])*0x1p-32 {
					t.Fatalf("d=%d: coordinate %d of point %d is %v, want %v", c.Dim, j, c.Start+uint32(i), got[j], float64(want[j])*0x1p-32)
				}
			}
		}
	}
}

// set returns the points from start to start+n−1.
func set(t testing.TB, dim int, seed uint64, scrambled bool, start, n int) [][]float64 {
	t.Helper()
	s, err := design.NewSobol(dim)
	if scrambled {
		s, err = design.NewScrambledSobol(dim, seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, dim)
		s.At(points[i], uint32(start+i))
	}
	return points
}

// counts returns how many of the points lie in each elementary interval of
// 2^levels[c] parts in coordinate c.
func counts(points [][]float64, levels []int) []int {
	total := 0
	for _, l := range levels {
		total += l
	}
	out := make([]int, 1<<total)
	for _, p := range points {
		cell := 0
		for c, l := range levels {
			cell = cell<<l | int(math.Ldexp(p[c], l))
		}
		out[cell]++
	}
	slices.Sort(out)
	return out
}

// Scrambling permutes the elementary intervals of each shape among themselves, so it
// keeps the multiset of their counts: a (t, m, s)-net stays one (Owen 1995, section 3).
func TestScramblingKeepsTheNet(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dim := rapid.IntRange(1, 6).Draw(r, "dim")
		m := rapid.IntRange(0, 8).Draw(r, "m")
		block := rapid.IntRange(0, 3).Draw(r, "block")
		seed := rapid.Uint64().Draw(r, "seed")
		levels := make([]int, dim)
		left := m
		for c := range levels {
			levels[c] = rapid.IntRange(0, left).Draw(r, "level")
			left -= levels[c]
		}
		plain := counts(set(t, dim, 0, false, block<<m, 1<<m), levels)
		scrambled := counts(set(t, dim, seed, true, block<<m, 1<<m), levels)
		if !slices.Equal(plain, scrambled) {
			r.Errorf("levels %v: counts %v, unscrambled %v", levels, scrambled, plain)
		}
	})
}

// The first two coordinates are a (0, m, 2)-net: one point in each elementary interval
// of volume 2^-m, of any shape.
func TestScrambledPairIsAZeroNet(t *testing.T) {
	const m = 7
	for seed := range uint64(5) {
		points := set(t, 2, seed, true, 0, 1<<m)
		for l := 0; l <= m; l++ {
			for _, n := range counts(points, []int{l, m - l}) {
				if n != 1 {
					t.Fatalf("seed %d, 2^%d × 2^%d intervals: %d points in one", seed, l, m-l, n)
				}
			}
		}
	}
}

func TestProjectionsAreStratified(t *testing.T) {
	for _, dim := range []int{1, 40, design.MaxDim} {
		points := set(t, dim, 11, true, 0, 64)
		for c := range dim {
			seen := make([]bool, 64)
			for _, p := range points {
				cell := int(p[c] * 64)
				if p[c] < 0 || p[c] >= 1 || seen[cell] {
					t.Fatalf("d=%d: two points, or one outside, in stratum %d of coordinate %d", dim, cell, c)
				}
				seen[cell] = true
			}
		}
	}
}

// Over seeds, each point is uniform in each coordinate, and its coordinates are
// independent. The bounds are the 1e-6 tails of the χ² distribution with 63
// degrees of freedom.
func TestPointsAreUniformOverSeeds(t *testing.T) {
	const seeds, low, high = 64 * 200, 23.1, 131.4
	s := make([]*design.Sobol, seeds)
	for i := range s {
		var err error
		if s[i], err = design.NewScrambledSobol(3, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	p := make([]float64, 3)
	for _, index := range []uint32{0, 1, 5, 1023, 1 << 31} {
		single, pair := make([]float64, 64), make([]float64, 64)
		for _, sobol := range s {
			sobol.At(p, index)
			single[int(p[2]*64)]++
			pair[int(p[0]*8)*8+int(p[1]*8)]++
		}
		for name, cells := range map[string][]float64{"one coordinate": single, "two coordinates": pair} {
			var chi2 float64
			for _, n := range cells {
				chi2 += (n - seeds/64) * (n - seeds/64) / (seeds / 64)
			}
			if chi2 < low || chi2 > high {
				t.Errorf("point %d, %s: χ² = %.1f, want %g to %g", index, name, chi2, low, high)
			}
		}
	}
}

// For two points whose first digits agree, one coin decides their next digits; after
// they differ, independent coins do. So their difference varies over seeds, unlike with
// a digital shift.
func TestScramblingIsNotAShift(t *testing.T) {
	distances := map[float64]bool{}
	for seed := range uint64(50) {
		p := set(t, 1, seed, true, 0, 2)
		distances[math.Abs(p[0][0]-p[1][0])] = true
	}
	if len(distances) < 45 {
		t.Errorf("50 seeds give %d distances between the first two points", len(distances))
	}
}

func TestScrambledIntegratesBetterThanIndependentPoints(t *testing.T) {
	// ∫ Π (1 + (x_c − ½)) = 1; the variance of the integrand is (13/12)^5 − 1,
	// so n independent points have a squared error of 0.49/n.
	const dim, n, seeds = 5, 256, 40
	var squared float64
	for seed := range uint64(seeds) {
		var sum float64
		for _, p := range set(t, dim, seed, true, 0, n) {
			f := 1.0
			for _, x := range p {
				f *= x + 0.5
			}
			sum += f
		}
		squared += (sum/n - 1) * (sum/n - 1) / seeds
	}
	if independent := (math.Pow(13.0/12, dim) - 1) / n; squared > independent/50 {
		t.Errorf("mean squared error %.3g, want less than a fiftieth of %.3g", squared, independent)
	}
}

func TestDimensionOutOfRange(t *testing.T) {
	for _, dim := range []int{-1, 0, design.MaxDim + 1} {
		if _, err := design.NewSobol(dim); !errors.Is(err, design.ErrDimension) {
			t.Errorf("NewSobol(%d): error %v, want ErrDimension", dim, err)
		}
		if _, err := design.NewScrambledSobol(dim, 1); !errors.Is(err, design.ErrDimension) {
			t.Errorf("NewScrambledSobol(%d): error %v, want ErrDimension", dim, err)
		}
	}
}

func BenchmarkScrambledSobol(b *testing.B) {
	s, err := design.NewScrambledSobol(9, 1)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]float64, 9)
	for i := uint32(0); b.Loop(); i++ {
		s.At(p, i)
	}
}
