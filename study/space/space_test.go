package space_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/studytest"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

var ptr, numeric = studytest.Ptr, studytest.Numeric

// tree is a space with conditions two deep, and a constraint.
func tree(t *testing.T) *space.Space {
	t.Helper()
	compiled, err := celspace.New([]study.Parameter{
		{Name: "pad", Type: study.Bool, When: map[string][]any{"crop": {3, 4}}}, // listed before the parameter that it depends on
		{Name: "augment", Type: study.Bool},
		{Name: "crop", Type: study.Int, Min: ptr(1), Max: ptr(4), When: map[string][]any{"augment": {true}}},
		{Name: "width", Type: study.Ordinal, Values: []any{32, 64.0, 128}},
		{Name: "epochs", Type: study.Fixed, Value: 10},
	}, []string{"crop * width <= 128"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestParametersOrder(t *testing.T) {
	compiled := tree(t)
	var names []string
	for _, p := range compiled.Parameters() {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"augment", "crop", "pad", "width", "epochs"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	crop, ok := compiled.Parameter("crop")
	if !ok || crop.Scale != study.Linear {
		t.Errorf("crop is %v, %v", crop, ok)
	}
	if _, ok := compiled.Parameter("none"); ok {
		t.Error("there is a parameter none")
	}
}

func TestActive(t *testing.T) {
	compiled := tree(t)
	for _, test := range []struct {
		point study.Point
		name  string
		want  bool
	}{
		{study.Point{}, "augment", true},
		{study.Point{}, "crop", false},
		{study.Point{"augment": false}, "crop", false},
		{study.Point{"augment": true}, "crop", true},
		{study.Point{"augment": true, "crop": int64(2)}, "pad", false},
		{study.Point{"augment": true, "crop": int64(3)}, "pad", true},
		{study.Point{"augment": false, "crop": int64(3)}, "pad", false},
		{study.Point{}, "none", false},
	} {
		if got := compiled.Active(test.point, test.name); got != test.want {
			t.Errorf("Active(%v, %s) = %v", test.point, test.name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	compiled := tree(t)
	point := func(changes study.Point) study.Point {
		p := study.Point{"augment": true, "crop": int64(3), "pad": true, "width": int64(32), "epochs": int64(10)}
		for name, value := range changes {
			if value == nil {
				delete(p, name)
			} else {
				p[name] = value
			}
		}
		return p
	}
	for name, test := range map[string]struct {
		point study.Point
		ok    bool
	}{
		"whole":             {point(nil), true},
		"without branch":    {point(study.Point{"augment": false, "crop": nil, "pad": nil}), true},
		"missing":           {point(study.Point{"width": nil}), false},
		"missing child":     {point(study.Point{"pad": nil}), false},
		"inactive child":    {point(study.Point{"crop": int64(1)}), false},
		"wrong type":        {point(study.Point{"crop": 3.0}), false},
		"outside":           {point(study.Point{"crop": int64(5)}), false},
		"no value of these": {point(study.Point{"width": int64(33)}), false},
		"list":              {point(study.Point{"width": []any{}}), false},
		"other fixed value": {point(study.Point{"epochs": int64(11)}), false},
		"unknown":           {point(study.Point{"x": 1.0}), false},
		"constraint":        {point(study.Point{"width": 64.0}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := compiled.Check(test.point); (err == nil) != test.ok || err != nil && !errors.Is(err, space.ErrNotInSpace) {
				t.Errorf("Check(%v) = %v", test.point, err)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	compiled, err := celspace.New([]study.Parameter{
		{Name: "x", Type: study.Float, Min: ptr(0), Max: ptr(2)},
		{Name: "s", Type: study.Float, Min: ptr(0), Max: ptr(1), Step: ptr(0.1)},
		{Name: "n", Type: study.Int, Min: ptr(0), Max: ptr(9)},
		{Name: "c", Type: study.Categorical, Values: []any{1, 2.0, "three", true}},
		{Name: "f", Type: study.Fixed, Value: "fix", When: map[string][]any{"c": {true}}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ raw, want map[string]any }{
		"numbers":       {map[string]any{"x": 1, "n": 3.0, "s": 0.1 + 0.2}, map[string]any{"x": 1.0, "n": int64(3), "s": 0.3}},
		"Go's numbers":  {map[string]any{"x": float32(0.5), "n": uint64(3), "c": int32(2)}, map[string]any{"x": 0.5, "n": int64(3), "c": 2.0}},
		"JSON's":        {map[string]any{"x": json.Number("1e-3"), "n": json.Number("3")}, map[string]any{"x": 0.001, "n": int64(3)}},
		"out of range":  {map[string]any{"x": json.Number("1e999")}, nil},
		"too large":     {map[string]any{"n": uint64(math.MaxUint64)}, nil},
		"minus zero":    {map[string]any{"x": math.Copysign(0, -1)}, map[string]any{"x": 0.0}},
		"listed":        {map[string]any{"c": 1.0}, map[string]any{"c": int64(1)}},
		"listed float":  {map[string]any{"c": int64(2)}, map[string]any{"c": 2.0}},
		"fills fixed":   {map[string]any{"c": true}, map[string]any{"c": true, "f": "fix"}},
		"nothing":       {nil, map[string]any{}},
		"two problems":  {map[string]any{"x": 3.0, "c": "four"}, nil},
		"text":          {map[string]any{"x": "1"}, nil},
		"half":          {map[string]any{"n": 2.5}, nil},
		"off the grid":  {map[string]any{"s": 0.15}, nil},
		"NaN":           {map[string]any{"x": math.NaN()}, nil},
		"unknown":       {map[string]any{"y": 1}, nil},
		"inactive":      {map[string]any{"c": "three", "f": "fix"}, nil},
		"needs another": {map[string]any{"f": "fix"}, nil},
		"list":          {map[string]any{"x": []any{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compiled.Normalize(test.raw)
			if (err == nil) != (test.want != nil) || err != nil && !errors.Is(err, space.ErrNotInSpace) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(study.Point(test.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if x, ok := got["x"].(float64); ok && math.Signbit(x) {
				t.Error("-0 is kept")
			}
		})
	}
}

// TestKey checks that keys distinguish points, and do not depend on the order in which
// a point was made.
func TestKey(t *testing.T) {
	compiled := tree(t)
	a := study.Point{"width": 64.0, "augment": false, "epochs": int64(10)}
	if got, want := compiled.Key(a), `{"augment":false,"width":64.0,"epochs":10}`; got != want {
		t.Errorf("Key = %s, want %s", got, want)
	}
	points, ok := compiled.Enumerate(1000)
	if !ok {
		t.Fatal("the tree is not enumerated")
	}
	keys := make(map[string]bool)
	for _, p := range points {
		keys[compiled.Key(p)] = true
	}
	if len(keys) != len(points) {
		t.Errorf("%d keys of %d points", len(keys), len(points))
	}
	if compiled.Key(study.Point{"width": math.NaN()}) == "" {
		t.Error("no key for what is no point")
	}
}

// TestSizeAndEnumerate counts the tree by hand. Without augment, 3 widths. With
// it, crop 1 and 2 have 3 widths, crop 3 and 4 have 3 widths and 2 pads: 3 + 6 +
// 12 = 21. crop*width <= 128 leaves 3 without; with crop 1 all 3, 2 of crop 2,
// 1 width times 2 pads of crop 3 and of crop 4: 3 + 3 + 2 + 2 + 2 = 12.
func TestSizeAndEnumerate(t *testing.T) {
	compiled := tree(t)
	if n, finite := compiled.Size(); n != 21 || !finite {
		t.Errorf("Size() = %d, %v, want 21", n, finite)
	}
	points, ok := compiled.Enumerate(12)
	if !ok || len(points) != 12 {
		t.Fatalf("Enumerate(12) = %d points, %v", len(points), ok)
	}
	for _, p := range points {
		if err := compiled.Check(p); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
	if _, ok := compiled.Enumerate(11); ok {
		t.Error("Enumerate(11) holds 12 points")
	}
}

// TestSizeOfLargeSpaces checks spaces whose points are not counted.
func TestSizeOfLargeSpaces(t *testing.T) {
	wide := make([]study.Parameter, 20)
	for i := range wide {
		wide[i] = study.Parameter{Name: string(rune('a' + i)), Type: study.Int, Min: ptr(0), Max: ptr(999)}
	}
	when := make(map[string][]any)
	entangled := make([]study.Parameter, 40)
	for i := range entangled {
		entangled[i] = study.Parameter{Name: fmt.Sprintf("p%d", i), Type: study.Bool}
		when[entangled[i].Name] = []any{true}
	}
	entangled = append(entangled, study.Parameter{Name: "leaf", Type: study.Bool, When: when})
	for name, params := range map[string][]study.Parameter{
		"float":     {numeric(study.Float, 0, 1, 0, study.Linear)},
		"wide":      wide,
		"entangled": entangled,
	} {
		compiled, err := celspace.New(params, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, finite := compiled.Size(); finite {
			t.Errorf("%s: Size() = %d", name, n)
		}
		if _, ok := compiled.Enumerate(1000); ok {
			t.Errorf("%s is enumerated", name)
		}
	}
}

// drawSpace draws a small finite space with conditions on earlier parameters.
func drawSpace(t *rapid.T) *space.Space {
	n := rapid.IntRange(1, 5).Draw(t, "parameters")
	params := make([]study.Parameter, n)
	for i := range params {
		p := study.Parameter{Name: string(rune('a' + i))}
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			p.Type = study.Bool
		case 1:
			p.Type, p.Min, p.Max = study.Int, ptr(1), ptr(3)
		case 2:
			p.Type, p.Values = study.Categorical, []any{"u", 1.5, 2}
		default:
			p.Type, p.Value = study.Fixed, 1
		}
		for j := range i {
			parent := params[j]
			if rapid.IntRange(0, 2).Draw(t, "depends") > 0 {
				continue
			}
			var all []any
			for k, c := 0, cardinality(parent); k < c; k++ {
				if rapid.Bool().Draw(t, "listed") {
					all = append(all, parent.At(k))
				}
			}
			if len(all) > 0 {
				if p.When == nil {
					p.When = make(map[string][]any)
				}
				p.When[parent.Name] = all
			}
		}
		params[i] = p
	}
	compiled, err := celspace.New(params, nil, nil)
	if err != nil {
		t.Fatalf("%v: %v", params, err)
	}
	return compiled
}

func cardinality(p study.Parameter) int {
	n, _ := p.Cardinality()
	return n
}

// TestSpaceProperties compares, for any small space, Enumerate and Size with all
// assignments of values that Check accepts, and Normalize with the identity on them.
func TestSpaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compiled := drawSpace(t)
		var want []string
		var try func(i int, p study.Point)
		try = func(i int, p study.Point) {
			if i == len(compiled.Parameters()) {
				if compiled.Check(p) == nil {
					want = append(want, compiled.Key(p))
				}
				return
			}
			param := compiled.Parameters()[i]
			try(i+1, p)
			for k := range cardinality(param) {
				q := maps.Clone(p)
				q[param.Name] = param.At(k)
				try(i+1, q)
			}
		}
		try(0, study.Point{})
		points, ok := compiled.Enumerate(len(want))
		if !ok {
			t.Fatalf("%d points are not enumerated", len(want))
		}
		var got []string
		for _, p := range points {
			got = append(got, compiled.Key(p))
			again, err := compiled.Normalize(p)
			if err != nil || compiled.Key(again) != compiled.Key(p) {
				t.Fatalf("Normalize(%v) = %v, %v", p, again, err)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("points (-want +got):\n%s", diff)
		}
		if n, finite := compiled.Size(); !finite || n != len(want) {
			t.Fatalf("Size() = %d, %v, want %d", n, finite, len(want))
		}
	})
}

// TestConstraints checks what constraints mean.
func TestConstraints(t *testing.T) {
	params := []study.Parameter{
		numeric(study.Float, 0, 10, 0, study.Linear),
		{Name: "batch-size", Type: study.Int, Min: ptr(1), Max: ptr(512)},
		{Name: "opt.rate", Type: study.Float, Min: ptr(0), Max: ptr(1)},
		{Name: "width", Type: study.Ordinal, Values: []any{32, 64, 0.5}},
		{Name: "flag", Type: study.Bool},
		{Name: "m", Type: study.Float, Min: ptr(0), Max: ptr(1), When: map[string][]any{"flag": {true}}},
		{Name: "amp", Type: study.Categorical, Values: []any{true, false}},
	}
	point := study.Point{"amp": true, "x": 2.5, "batch-size": int64(12), "opt.rate": 0.5, "width": int64(64), "flag": false}
	for source, want := range map[string]bool{
		"batch_size <= 12":                     true,
		"batch_size * x <= 30":                 true,
		"batch_size / 5 == 2.4":                true, // numbers divide as real numbers
		"batch_size % 5 == 2":                  true,
		"2 * batch_size + 1 > x":               true,
		"opt.rate < 0.5":                       false,
		"width in [32, 64]":                    true,
		"x < 1 || width > 1":                   true,
		"x > 1 ? width < 1 : width > 1":        false,
		"math.least(x, width) == x":            true,
		"math.sqrt(batch_size + 4) == 4.0":     true,
		"!(x > 1)":                             false,
		"m > 0.9":                              true, // m is not active
		"m > 0.9 && x > 9":                     true,
		"(x - 2.5) / (x - 2.5) <= 1 || x == 1": false, // 0/0 is not met
		"flag":                                 false,
		"!flag":                                true,
		"flag || x < 5":                        true,
		"flag == true":                         false,
		"(flag ? 20 : 10) * x <= 25":           true,
		"amp ? batch_size <= 12 : x > 9":       true,
	} {
		compiled, err := celspace.New(params, []string{source}, nil)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := compiled.Feasible(point); got != want {
			t.Errorf("%s: %v at %v", source, got, point)
		}
	}
}

// TestSatisfiable checks that constraints with little room are accepted: points that
// are hard to find are found, and a constraint is refused only if none is found.
func TestSatisfiable(t *testing.T) {
	params := []study.Parameter{
		{Name: "a", Type: study.Float, Min: ptr(0), Max: ptr(1)},
		{Name: "b", Type: study.Float, Min: ptr(0), Max: ptr(1)},
		{Name: "c", Type: study.Int, Min: ptr(1), Max: ptr(1e9)},
		{Name: "d", Type: study.Int, Min: ptr(1), Max: ptr(100)},
		{Name: "e", Type: study.Int, Min: ptr(1), Max: ptr(100)},
	}
	for name, test := range map[string]struct {
		constraints []string
		initial     []map[string]any
		ok          bool
	}{
		"a corner":      {[]string{"a + b >= 2", "c == 1"}, nil, true},
		"a thin slice":  {[]string{"a - b > 0.001 && a - b < 0.002"}, nil, true},
		"one of 10000":  {[]string{"d * e == 9409"}, nil, true}, // 97 squared
		"none of 10000": {[]string{"d * e == 10201"}, nil, false},
		"in turn":       {[]string{"a < 0.02", "b < 0.02", "a > 0.01", "b > 0.01", "c < 2e7"}, nil, true},
		"only when given": {[]string{"math.abs(a * b - 0.25) < 1e-9 && math.abs(a * a - 0.25) < 1e-9"}, []map[string]any{{"a": 0.5, "b": 0.5}},
			true},
		"needle":            {[]string{"math.abs(a * b - 0.25) < 1e-9 && math.abs(a * a - 0.25) < 1e-9"}, nil, false},
		"a solved needle":   {[]string{"a == 0.123456 && b == 0.654321"}, nil, true},
		"contradictory":     {[]string{"a < b", "b < a"}, nil, false},
		"three in a circle": {[]string{"a < b", "b < c", "c < a + 1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := celspace.New(params, test.constraints, test.initial); (err == nil) != test.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestNewSpaceLeavesItsInput checks that compiling changes no argument.
func TestNewSpaceLeavesItsInput(t *testing.T) {
	make := func() ([]study.Parameter, []map[string]any) {
		return []study.Parameter{
			{Name: "c", Type: study.Categorical, Values: []any{1, 2}},
			{Name: "x", Type: study.Float, Min: ptr(0), Max: ptr(1), When: map[string][]any{"c": {1.0}}},
		}, []map[string]any{{"c": 1.0}}
	}
	params, initial := make()
	compiled, err := celspace.New(params, nil, initial)
	if err != nil {
		t.Fatal(err)
	}
	wantParams, wantInitial := make()
	if diff := cmp.Diff(wantParams, params); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantInitial, initial); diff != "" {
		t.Errorf("initial (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]study.Point{{"c": int64(1)}}, compiled.Initial()); diff != "" {
		t.Errorf("Initial() (-want +got):\n%s", diff)
	}
}

// TestNewSpaceProblems checks that problems of a space without a file have paths but no
// line numbers.
func TestNewSpaceProblems(t *testing.T) {
	_, err := celspace.New(nil, nil, nil)
	_, taken := celspace.New([]study.Parameter{{Name: "int", Type: study.Int, Min: ptr(0), Max: ptr(5)}}, []string{"int > 3"}, nil)
	if taken == nil || !strings.Contains(taken.Error(), "type(int)") {
		t.Errorf("a parameter that CEL takes for a type: %v", taken)
	}
	if want := "parameters: there are none: give at least one parameter to tune"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
