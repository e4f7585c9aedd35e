package space_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// floats returns parameters with the ranges, each a pair of bounds.
func floats(ranges ...float64) []study.Parameter {
	var list []study.Parameter
	for i := 0; i < len(ranges); i += 2 {
		list = append(list, study.Parameter{
			Name: string(rune('a' + i/2)), Type: study.Float, Min: new(ranges[i]), Max: new(ranges[i+1]),
		})
	}
	return list
}

func compiled(t *testing.T, params []study.Parameter, constraints ...string) *space.Space {
	t.Helper()
	s, err := celspace.New(params, constraints, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// uniform returns a random point, without regard to constraints.
func uniform(s *space.Space, rng *rand.Rand) study.Point {
	p := study.Point{}
	for _, q := range s.Parameters() {
		p[q.Name] = q.FromUnit(rng.Float64())
	}
	return p
}

// projected returns a random point, and where Project moves it.
func projected(s *space.Space, rng *rand.Rand) (from, p study.Point) {
	from = uniform(s, rng)
	p = maps.Clone(from)
	s.Project(p, nil)
	return from, p
}

// distance returns the Kolmogorov-Smirnov statistic of values and a distribution function,
// times the root of their number: beyond 1.95 with a probability of 0.1% (Kolmogorov 1933).
func distance(values []float64, cdf func(float64) float64) float64 {
	slices.Sort(values)
	var most float64
	n := float64(len(values))
	for i, v := range values {
		most = max(most, math.Abs(cdf(v)-float64(i)/n), math.Abs(cdf(v)-float64(i+1)/n))
	}
	return most * math.Sqrt(n)
}

// Uniform points of a simplex with d corners have the marginal distribution function
// 1-(1-x)^(d-1): it is Dirichlet(1, …, 1).
func TestPointsOfASimplexAreUniform(t *testing.T) {
	for _, d := range []int{2, 3, 10} {
		sum, ranges := "a", []float64{0, 1}
		for i := 1; i < d; i++ {
			sum, ranges = sum+" + "+string(rune('a'+i)), append(ranges, 0, 1)
		}
		s := compiled(t, floats(ranges...), sum+" == 1.0")
		for name, draw := range map[string]func(p study.Point, rng *rand.Rand){
			"solve":  func(p study.Point, _ *rand.Rand) { s.Solve(p, nil) },
			"wander": func(p study.Point, rng *rand.Rand) { s.Wander(p, nil, rng) },
		} {
			if name == "solve" && d > 3 {
				continue // most points would be dropped
			}
			t.Run(fmt.Sprintf("%s %d", name, d), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(7, 7))
				values := make([][]float64, d)
				for len(values[0]) < 4000 {
					p := uniform(s, rng)
					draw(p, rng)
					if !s.Feasible(p) {
						continue
					}
					total := 0.0
					for i := range d {
						v := p[string(rune('a'+i))].(float64)
						total += v
						values[i] = append(values[i], v)
					}
					if total != 1 {
						t.Fatalf("the sum of %v is %v", p, total)
					}
				}
				for i := range d {
					if k := distance(values[i], func(x float64) float64 { return 1 - math.Pow(1-x, float64(d-1)) }); k > 1.95 {
						t.Errorf("parameter %d is not distributed as Dirichlet's marginal: the statistic is %.2f", i+1, k)
					}
				}
			})
		}
	}
}

// Uniform points of a slab around a + b = 1: a is uniform, and so is the sum in the slab.
func TestPointsOfASlabAreUniform(t *testing.T) {
	for _, constraints := range [][]string{{"a + b <= 1", "a + b >= 0.999999"}, {"math.abs(2 * (a + b) - 1.999999) <= 1e-6"},
		{"a <= 1 - b && 0.999999 - a <= b"}} {
		s := compiled(t, floats(0, 1, 0, 1), constraints...)
		for name, draw := range map[string]func(p study.Point, rng *rand.Rand){
			"solve":  func(p study.Point, _ *rand.Rand) { s.Solve(p, nil) },
			"wander": func(p study.Point, rng *rand.Rand) { s.Wander(p, nil, rng) },
		} {
			rng := rand.New(rand.NewPCG(3, 3))
			var first, sums []float64
			for len(first) < 2000 {
				p := uniform(s, rng)
				if draw(p, rng); s.Feasible(p) {
					a, b := p["a"].(float64), p["b"].(float64)
					first, sums = append(first, a), append(sums, (a+b-0.999999)/1e-6)
				}
			}
			if k := distance(first, func(x float64) float64 { return x }); k > 1.95 {
				t.Errorf("%v, %s: a is not uniform: %.2f", constraints, name, k)
			}
			if k := distance(sums, func(x float64) float64 { return x }); k > 1.95 {
				t.Errorf("%v, %s: a + b is not uniform: %.2f", constraints, name, k)
			}
		}
	}
}

// Whatever point is projected meets the constraints, sums of about equal terms as they are
// computed, and stays where it is the next time.
func TestProject(t *testing.T) {
	mixed := append(floats(0, 1, -2, 3, 0, 10), study.Parameter{Name: "n", Type: study.Int, Min: new(0.0), Max: new(3.0)},
		study.Parameter{Name: "rate", Type: study.Float, Min: new(1e-4), Max: new(1.0), Scale: study.Log})
	for _, c := range []struct {
		params      []study.Parameter
		constraints []string
		holds       func(v func(string) float64) bool
	}{
		{floats(0, 1, 0, 1, 0, 1), []string{"a + b + c == 1.0"}, func(v func(string) float64) bool { return v("a")+v("b")+v("c") == 1 }},
		{floats(0, 1, 0, 1, 0, 1), []string{"1 - a == b + c"}, func(v func(string) float64) bool { return 1-v("a") == v("b")+v("c") }},
		{floats(-1, 1, -1, 1), []string{"a == -b"}, func(v func(string) float64) bool { return v("a") == -v("b") }},
		{floats(0, 1e6, 0, 1e-6), []string{"a - 1e11 * b == 1000"},
			func(v func(string) float64) bool { return math.Abs(v("a")-1e11*v("b")-1000) <= 1e-9 }},
		{floats(0, 1, 0, 1, 0, 1, 0, 1), []string{"a + b == 1", "c + d == 0.7", "a <= c"}, func(v func(string) float64) bool {
			return v("a")+v("b") == 1 && v("c")+v("d") == 0.7 && v("a") <= v("c")
		}},
		{floats(0, 1, 0, 1, 0, 1), []string{"a + b + c <= 0.001"}, func(v func(string) float64) bool { return v("a")+v("b")+v("c") <= 0.001 }},
		{floats(0, 1, 0, 1), []string{"a + b == 1 && a <= 0.5", "2 * a + 2 * b == 2"}, func(v func(string) float64) bool {
			return v("a")+v("b") == 1 && v("a") <= 0.5
		}},
		{floats(0, 1), []string{"a == 0.3"}, func(v func(string) float64) bool { return v("a") == 0.3 }},
		{mixed, []string{"a + b / 2 + c == n + 1 + rate"}, func(v func(string) float64) bool {
			return v("a")+v("b")/2+v("c") == v("n")+1+v("rate")
		}},
	} {
		s := compiled(t, c.params, c.constraints...)
		if !s.Solves() {
			t.Errorf("%v are not solved", c.constraints)
			continue
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 500 {
			from, p := projected(s, rng)
			value := func(name string) float64 { v, _ := study.Number(p[name]); return v }
			if err := s.Check(p); err != nil || !c.holds(value) {
				t.Fatalf("%v: %v was moved to %v: %v", c.constraints, from, p, err)
			}
			if p["n"] != from["n"] || p["rate"] != from["rate"] {
				t.Fatalf("%v: %v was moved to %v: these are not to be changed", c.constraints, from, p)
			}
			before := s.Key(p)
			if s.Project(p, nil); s.Key(p) != before {
				t.Fatalf("%v: %s was moved again, to %s", c.constraints, before, s.Key(p))
			}
		}
	}
}

// What was written in decimals meets an equality though its sum is off by rounding, but not
// if it is off by more.
func TestEqualityOfDecimals(t *testing.T) {
	s := compiled(t, floats(0, 1, 0, 1, 0, 1), "a + b + c == 1")
	if x, y := 0.3, 0.6; x+y+0.1 == 1 {
		t.Fatal("this sum is exact")
	}
	if err := s.Check(study.Point{"a": 0.3, "b": 0.6, "c": 0.1}); err != nil {
		t.Error(err)
	}
	if s.Check(study.Point{"a": 0.3, "b": 0.6, "c": 0.1 + 1e-14}) == nil {
		t.Error("a sum beyond the rounding error is accepted")
	}
}

func TestWhatIsNotSolved(t *testing.T) {
	for _, constraints := range [][]string{
		{"a + b <= 1"}, {"a * b <= 0.5"}, {"a != b"}, {"a + b == 1 || a > 0.5"}, {"math.sqrt(a) <= b"},
	} {
		if compiled(t, floats(0, 1, 0, 1), constraints...).Solves() {
			t.Errorf("%v are solved", constraints)
		}
	}
}

func TestEqualitiesThatContradict(t *testing.T) {
	for _, constraints := range [][]string{{"a + b == 3"}, {"a + b == 1", "a + b == 1.5"}, {"a + b == 1", "a - b == 1", "b >= 0.5"}} {
		if _, err := celspace.New(floats(0, 1, 0, 1), constraints, nil); err == nil {
			t.Errorf("%v are accepted", constraints)
		}
	}
}
