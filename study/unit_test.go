package study_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/studytest"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

var numeric, drawNumeric = studytest.Numeric, studytest.DrawNumeric

// values lists all values of a parameter with a cardinality.
func values(t *testing.T, p study.Parameter) []any {
	t.Helper()
	n, ok := p.Cardinality()
	if !ok {
		t.Fatalf("%s has no cardinality", p.Name)
	}
	list := make([]any, n)
	for k := range list {
		list[k] = p.At(k)
	}
	return list
}

// TestSteps checks that steps count from min, end at or below max, and have no more
// decimals than the file.
func TestSteps(t *testing.T) {
	for name, test := range map[string]struct {
		parameter study.Parameter
		want      []any
	}{
		"decimals":      {numeric(study.Float, 0, 0.5, 0.1, study.Linear), []any{0.0, 0.1, 0.2, 0.3, 0.4, 0.5}},
		"from min":      {numeric(study.Float, 0.05, 0.35, 0.1, study.Linear), []any{0.05, 0.15, 0.25, 0.35}},
		"not dividing":  {numeric(study.Float, -1, 1, 0.75, study.Linear), []any{-1.0, -0.25, 0.5}},
		"log":           {numeric(study.Float, 0.001, 0.301, 0.1, study.Log), []any{0.001, 0.101, 0.201, 0.301}},
		"int":           {numeric(study.Int, -2, 1, 0, study.Linear), []any{int64(-2), int64(-1), int64(0), int64(1)}},
		"int by three":  {numeric(study.Int, 1, 9, 3, study.Log), []any{int64(1), int64(4), int64(7)}},
		"bool":          {study.Parameter{Type: study.Bool}, []any{false, true}},
		"ordinal":       {study.Parameter{Type: study.Ordinal, Values: []any{"s", "m"}}, []any{"s", "m"}},
		"fixed":         {study.Parameter{Type: study.Fixed, Value: "v"}, []any{"v"}},
		"tiny decimals": {numeric(study.Float, 1e-5, 4e-5, 1e-5, study.Log), []any{1e-5, 2e-5, 3e-5, 4e-5}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, values(t, test.parameter)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, ok := numeric(study.Float, 0, 1, 0, study.Linear).Cardinality(); ok {
		t.Error("a float without a step has a cardinality")
	}
}

// TestUnit checks the mapping at points worked out by hand.
func TestUnit(t *testing.T) {
	percent := numeric(study.Int, 1, 99, 0, study.Logit)
	// The bins of 1 … 99 end at 0.5 and 99.5, whose positions between 0 and 100 have
	// the logits ±ln(199); 10 has the logit −ln 9.
	percentOf10 := (math.Log(1.0/9) + math.Log(199)) / (2 * math.Log(199))
	for name, test := range map[string]struct {
		parameter study.Parameter
		value     any
		unit      float64
	}{
		"linear":         {numeric(study.Float, -2, 2, 0, study.Linear), 1.0, 0.75},
		"log":            {numeric(study.Float, 1e-5, 1e-1, 0, study.Log), 1e-3, 0.5},
		"logit":          {numeric(study.Float, 0.1, 0.9, 0, study.Logit), 0.5, 0.5},
		"int":            {numeric(study.Int, 1, 4, 0, study.Linear), int64(1), 0.125},
		"int by two":     {numeric(study.Int, 0, 7, 2, study.Linear), int64(6), 0.875},
		"log int":        {numeric(study.Int, 1, 31, 0, study.Log), int64(4), math.Log(4/0.5) / math.Log(31.5/0.5)},
		"logit int":      {percent, int64(50), 0.5},
		"logit int of 9": {percent, int64(10), percentOf10},
		"stepped logit":  {numeric(study.Int, 0, 100, 10, study.Logit), int64(50), 0.5},
		"bool":           {study.Parameter{Type: study.Bool}, true, 0.75},
		"categorical":    {study.Parameter{Type: study.Categorical, Values: []any{"a", "b", "c"}}, "b", 0.5},
		"fixed":          {study.Parameter{Type: study.Fixed, Value: int64(3)}, int64(3), 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.parameter.ToUnit(test.value); math.Abs(got-test.unit) > 1e-7 {
				t.Errorf("ToUnit(%v) = %v, want %v", test.value, got, test.unit)
			}
			got := test.parameter.FromUnit(test.unit)
			if x, ok := got.(float64); ok {
				if math.Abs(x-test.value.(float64)) > 1e-12 {
					t.Errorf("FromUnit(%v) = %v, want %v", test.unit, got, test.value)
				}
			} else if got != test.value {
				t.Errorf("FromUnit(%v) = %v, want %v", test.unit, got, test.value)
			}
		})
	}
}

// TestUnitProperties checks for any numeric parameter: FromUnit gives a value of the
// parameter for any u, and grows with u. If there are steps, it inverts ToUnit exactly
// for every value.
func TestUnitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawNumeric(t)
		space, err := celspace.New([]study.Parameter{p}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		u := rapid.Float64().Draw(t, "u")
		v := rapid.Float64Range(0, 1).Draw(t, "v")
		for _, w := range []float64{u, v, 0, 1, math.NaN(), math.Inf(1), math.Inf(-1), -0.5, math.Copysign(0, -1)} {
			value := p.FromUnit(w)
			if err := space.Check(study.Point{"x": value}); err != nil {
				t.Fatalf("FromUnit(%v) = %v: %v", w, value, err)
			}
			back := p.ToUnit(value)
			if !(back >= 0 && back <= 1) {
				t.Fatalf("ToUnit(%v) = %v is outside of [0,1]", value, back)
			}
			if n, ok := p.Cardinality(); ok {
				if again := p.FromUnit(back); again != value {
					t.Fatalf("FromUnit(ToUnit(%v)) = %v, of %d values", value, again, n)
				}
			}
		}
		if n, ok := p.Cardinality(); ok {
			at := p.At(rapid.IntRange(0, n-1).Draw(t, "k"))
			if got := p.FromUnit(p.ToUnit(at)); got != at {
				t.Fatalf("FromUnit(ToUnit(%v)) = %v, of %d values", at, got, n)
			}
		}
		w := min(1, v+0.01)
		a, b := toFloat(p.FromUnit(v)), toFloat(p.FromUnit(w))
		if a > b && a-b > 1e-9*math.Abs(a) {
			t.Fatalf("FromUnit(%v) = %v is above FromUnit(%v) = %v", v, a, w, b)
		}
	})
}

// TestUnitInverse checks that ToUnit inverts FromUnit for floats on ranges wide enough
// for it.
func TestUnitInverse(t *testing.T) {
	for _, p := range []study.Parameter{
		numeric(study.Float, -3, 5, 0, study.Linear),
		numeric(study.Float, 1e-8, 1e4, 0, study.Log),
		numeric(study.Float, 1e-6, 1-1e-6, 0, study.Logit),
	} {
		for i := range 101 {
			u := float64(i) / 100
			if got := p.ToUnit(p.FromUnit(u)); math.Abs(got-u) > 1e-9 {
				t.Errorf("%s: ToUnit(FromUnit(%v)) = %v", p.Scale, u, got)
			}
		}
		if p.FromUnit(0) != *p.Min || p.FromUnit(1) != *p.Max {
			t.Errorf("%s: the ends map to %v and %v", p.Scale, p.FromUnit(0), p.FromUnit(1))
		}
	}
}

// TestUnitShares checks that each value of a linear int, a bool and a categorical gets
// an equal share of [0,1].
func TestUnitShares(t *testing.T) {
	for _, p := range []study.Parameter{
		numeric(study.Int, -2, 2, 0, study.Linear),
		numeric(study.Float, 0, 1, 0.25, study.Linear),
		{Type: study.Categorical, Values: []any{"a", "b", "c", "d", "e"}},
	} {
		counts := make(map[any]int)
		for i := range 1000 {
			counts[p.FromUnit((float64(i)+0.5)/1000)]++
		}
		for value, n := range counts {
			if n != 200 || len(counts) != 5 {
				t.Errorf("%s: %d of 1000 go to %v, of %d values", p.Type, n, value, len(counts))
			}
		}
	}
}

// TestIndex checks that Index inverts At, and refuses everything else.
func TestIndex(t *testing.T) {
	p := numeric(study.Float, 0, 0.5, 0.1, study.Linear)
	for k, v := range values(t, p) {
		if got, ok := p.Index(v); !ok || got != k {
			t.Errorf("Index(%v) = %d, %v", v, got, ok)
		}
	}
	for _, v := range []any{0.05, 0.6, -0.1, math.NaN(), "0.1", true, nil, []any{0.1}} {
		if k, ok := p.Index(v); ok {
			t.Errorf("Index(%v) = %d", v, k)
		}
	}
	b := study.Parameter{Type: study.Bool}
	if _, ok := b.Index("true"); ok {
		t.Error("a bool takes text")
	}
	defer func() {
		if recover() == nil {
			t.Error("At(-1) does not panic")
		}
	}()
	p.At(-1)
}

func toFloat(v any) float64 {
	x, err := strconv.ParseFloat(study.Format(v), 64)
	if err != nil {
		panic(err)
	}
	return x
}

// From 2^53 on, a number that came as a float64 may have been another whole number. None of them is
// a value, so that no two values are taken for each other on a way that has only such numbers.
func TestWholeNumbersBeyondExact(t *testing.T) {
	bound := float64(study.MaxExact)
	size := study.Parameter{Name: "n", Type: study.Int, Min: &bound, Max: &bound}
	choice := study.Parameter{Name: "c", Type: study.Categorical, Values: []any{int64(study.MaxExact), "9007199254740993"}}
	for _, p := range []study.Parameter{size, choice} {
		for _, same := range []any{int64(study.MaxExact), bound} {
			if v, err := p.Convert(same); err != nil || v != int64(study.MaxExact) {
				t.Errorf("%s: %v becomes %v, %v", p.Name, same, v, err)
			}
		}
		for _, other := range []any{float64(1 << 53), float64(1<<53 + 1), int64(1 << 53), int64(1<<53 + 1)} {
			if v, err := p.Convert(other); err == nil {
				t.Errorf("%s: %v becomes %v", p.Name, other, v)
			}
		}
	}
}
