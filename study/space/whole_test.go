package space_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// ints returns parameters with the ranges, each a pair of bounds.
func ints(ranges ...float64) []study.Parameter {
	list := floats(ranges...)
	for i := range list {
		list[i].Type = study.Int
	}
	return list
}

// Wander reaches all points that meet an equality equally often, counted against all points of
// the space: the statistic of Pearson's test with 24 to 80 degrees of freedom is beyond 130 with a
// probability below 0.1% (its 99.9th percentile at 80 is 124.8).
func TestWholeNumbersAreUniform(t *testing.T) {
	for _, c := range []struct {
		params      []study.Parameter
		constraints []string
	}{
		{ints(0, 4, 0, 4, 0, 9), []string{"a + b + c == 7"}},
		{ints(0, 30, -5, 25), []string{"a - b == 3"}},
		{ints(0, 4, -3, 3, 0, 20), []string{"a + b == c && c >= 1"}},
		{ints(0, 6, 0, 6, 0, 6, 0, 3), []string{"a + b == 6", "2 * d + c == 6 && 1 <= c"}},
	} {
		s := compiled(t, c.params, c.constraints...)
		all, ok := s.Enumerate(100)
		if !ok || !s.Solves() || len(all) < 5 {
			t.Fatalf("%v: %d points, solved: %v", c.constraints, len(all), s.Solves())
		}
		rng, count, n := rand.New(rand.NewPCG(1, 2)), map[string]int{}, 0
		for n < 200*len(all) {
			p := uniform(s, rng)
			if s.Wander(p, nil, rng); s.Feasible(p) {
				count[s.Key(p)]++
				n++
			}
		}
		statistic := 0.0
		for _, p := range all {
			off := float64(count[s.Key(p)]) - 200
			statistic += off * off / 200
		}
		if len(count) != len(all) || statistic > 130 {
			t.Errorf("%v: %d of %d points, the statistic is %.1f", c.constraints, len(count), len(all), statistic)
		}
	}
}

// Whatever point is projected meets the equalities, also over wide ranges, and stays where it is
// the next time.
func TestProjectWholeNumbers(t *testing.T) {
	fixed := study.Parameter{Name: "k", Type: study.Fixed, Value: int64(5)}
	levels := study.Parameter{Name: "l", Type: study.Ordinal, Values: []any{int64(16), int64(32), int64(64)}}
	for _, c := range []struct {
		params      []study.Parameter
		constraints []string
	}{
		{ints(0, 1e9, 0, 1e9), []string{"a + b == 10"}},
		{ints(0, 1e9, 0, 1e9), []string{"a == b"}},
		{ints(-1e6, 1e6, -1e6, 1e6, 0, 100), []string{"a - b == 3 * c"}},
		{ints(0, 1e6, 0, 1e6, 0, 1e6, 0, 1e6), []string{"a + b + c + d == 1000000"}},
		{ints(0, 1e6, 0, 1e6, 0, 1e6, 0, 1e6), []string{"a + b == 7", "c - d == 999999"}},
		{append(ints(0, 1e6, 0, 1e6), fixed, levels), []string{"a + b == k + l"}},
		{append(ints(0, 1e6, 0, 1e6), floats(0, 1, 0, 1, 0, 1, 0, 1)[2:]...), []string{"a + b == 3", "c + d == a / 3.0"}},
	} {
		s := compiled(t, c.params, c.constraints...)
		if !s.Solves() {
			t.Errorf("%v are not solved", c.constraints)
			continue
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 500 {
			from, p := projected(s, rng)
			if err := s.Check(p); err != nil {
				t.Fatalf("%v: %v was moved to %v: %v", c.constraints, from, p, err)
			}
			before := s.Key(p)
			if s.Project(p, nil); s.Key(p) != before {
				t.Fatalf("%v: %s was moved again, to %s", c.constraints, before, s.Key(p))
			}
			kept := study.Point{"a": p["a"]}
			if s.Wander(p, kept, rng); p["a"] != kept["a"] || !s.Feasible(p) {
				t.Fatalf("%v: %v was moved to %v with a fixed", c.constraints, before, p)
			}
		}
	}
}

func TestWholeNumbersThatAreNotSolved(t *testing.T) {
	steps := ints(0, 10, 0, 10)
	steps[0].Step, steps[1].Step = new(2.0), new(5.0)
	for _, c := range []struct {
		params     []study.Parameter
		constraint string
	}{
		{ints(0, 10, 0, 10), "a + b <= 10"}, {ints(0, 10, 0, 10), "2 * a == 4 * b"}, {ints(0, 10, 0, 10), "a * b == 10"},
		{ints(0, 10, 0, 10), "a + b == 10 || a == 1"}, {ints(0, 10, 0, 10), "a / 2 + b == 10"}, {steps, "a + b == 10"},
	} {
		if compiled(t, c.params, c.constraint).Solves() {
			t.Errorf("%s is solved", c.constraint)
		}
	}
	if _, err := celspace.New(ints(0, 10, 0, 10), []string{"a + b == 21"}, nil); err == nil {
		t.Error("a sum that no point has is accepted")
	}
}

// Ints that are told apart by nothing but their order are moved alike.
func TestNearestWholeNumbers(t *testing.T) {
	s := compiled(t, ints(0, 1e6, 0, 1e6, 0, 1e6), "a + b + c == 30")
	p := study.Point{"a": int64(20), "b": int64(20), "c": int64(20)}
	s.Project(p, nil)
	got := []any{p["a"], p["b"], p["c"]}
	if want := []any{int64(10), int64(10), int64(10)}; !slices.Equal(got, want) {
		t.Errorf("projected to %v, want %v", got, want)
	}
}

// An equality whose points are a set of measure zero is refused, unless it is solved. Those that
// random points do meet are not.
func TestEqualitiesThatCannotBeSampled(t *testing.T) {
	mixed := append(floats(0, 1, 0, 1), ints(0, 9, 0, 9)...)
	mixed[2].Name, mixed[3].Name = "n", "m"
	mixed = append(mixed, study.Parameter{Name: "flag", Type: study.Bool},
		study.Parameter{Name: "rate", Type: study.Float, Min: new(0.1), Max: new(1.0), Scale: study.Log},
		study.Parameter{Name: "step", Type: study.Float, Min: new(0.0), Max: new(1.0), Step: new(0.25)})
	for constraint, part := range map[string]string{
		"a * a + b * b == 1.0":            "it is not linear in the floats",
		"a * b == 0.5":                    "it is not linear in the floats",
		"n / (a + 1.0) == 2.0":            "it is not linear in the floats",
		"a * n == 1.0 && flag":            "it is not linear in the floats",
		"rate == 0.5":                     "(rate, for example)",
		"rate == n / 10.0":                "(rate, for example)",
		"a + b == 1.0":                    "",
		"rate + a == 1.0":                 "",
		"a + 0.0 * b * b == 0.5":          "",
		"flag == (a > 0.5)":               "",
		"flag || a * b == 0.5":            "",
		"math.floor(10.0 * a) == 3.0":     "",
		"math.abs(a * b - 0.5) <= 0.01":   "",
		"n * m == 6":                      "",
		"step * step == 0.25":             "",
		"(a > 0.5 ? 1 : 2) == n":          "",
		"0.0 * a + n == 3":                "",
		"a * b <= 0.5 && a * b != 0.25":   "",
		"math.greatest(a, 0.5) == 0.5":    "",
		"a * 2.0 == 1.0 && n * m * n < 9": "",
	} {
		_, err := celspace.New(mixed, []string{constraint}, nil)
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			t.Errorf("%s: error %v, want one with %q", constraint, err, part)
		}
	}
}
