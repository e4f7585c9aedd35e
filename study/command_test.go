package study_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{0.1, "0.1"}, {1.0, "1"}, {0.30000000000000004, "0.30000000000000004"}, {100000000.0, "100000000"},
		{0.0001, "0.0001"}, {0.00001, "1e-05"}, {1e21, "1e+21"}, {-2.5, "-2.5"}, {0.0, "0"},
		{int64(math.MaxInt64), "9223372036854775807"}, {int64(-3), "-3"},
		{true, "true"}, {false, "false"}, {"a b$", "a b$"}, {"", ""},
	} {
		if got := study.Format(test.value); got != test.want {
			t.Errorf("Format(%v) = %s, want %s", test.value, got, test.want)
		}
	}
}

// TestFormatReadsBack checks that any float is read back equal from its text, which is
// no longer than strconv's shortest.
func TestFormatReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		text := study.Format(x)
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != x {
			t.Fatalf("%v is written %s and read %v, %v", x, text, back, err)
		}
	})
}

func TestExpandCommand(t *testing.T) {
	order := []string{"lr", "hidden", "solver", "nesterov", "momentum"}
	point := study.Point{"lr": 1e-5, "hidden": int64(64), "solver": "a b", "nesterov": true} // momentum is not active
	for name, test := range map[string]struct{ template, want []string }{
		"values": {[]string{"train", "--lr=${lr}", "${hidden}x${hidden}"}, []string{"train", "--lr=1e-05", "64x64"}},
		"args": {[]string{"train", "--lr", "${lr}", "${args}", "end"},
			[]string{"train", "--lr", "1e-05", "--hidden=64", "--solver=a b", "--nesterov=true", "end"}},
		"overrides": {[]string{"train", "${overrides}"}, []string{"train", "lr=1e-05", "hidden=64", "solver=a b", "nesterov=true"}},
		"file":      {[]string{"train", "@${file}"}, []string{"train", "@/tmp/p.json"}},
		"literal": {[]string{"train", "$${lr}", "$lr", "$$", "$", "}{", "a$$${lr}"},
			[]string{"train", "${lr}", "$lr", "$$", "$", "}{", "a$${lr}"}},
		"no words":    {[]string{"train"}, []string{"train"}},
		"empty":       {nil, nil},
		"inactive":    {[]string{"train", "${momentum}"}, nil},
		"unknown":     {[]string{"train", "${x}"}, nil},
		"inside":      {[]string{"train", "a${args}"}, nil},
		"unfinished":  {[]string{"train", "${lr"}, nil},
		"empty word":  {[]string{"train", "${}"}, nil},
		"args is all": {[]string{"${args}"}, []string{"--lr=1e-05", "--hidden=64", "--solver=a b", "--nesterov=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := study.ExpandCommand(test.template, order, point, "/tmp/p.json")
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A study's value cannot become a flag of somebody else's command, but a negative number
// is a number, and the author of a study may tune the flags of its own command.
func TestForeignCommand(t *testing.T) {
	order := []string{"x", "n", "mode", "empty"}
	point := study.Point{"x": -0.5, "n": int64(-3), "mode": "--rm", "empty": ""}
	for _, test := range []struct {
		element, own, foreign string
	}{
		{"${x}", "-0.5", "-0.5"}, {"${n}", "-3", "-3"}, {"${mode}", "--rm", ""}, {"${mode}=1", "--rm=1", ""},
		{"${empty}-v", "-v", ""}, {"${empty}${mode}", "--rm", ""}, {"--mode=${mode}", "--mode=--rm", "--mode=--rm"},
		{"-${mode}", "---rm", "---rm"}, {"${empty}", "", ""}, {"a${mode}", "a--rm", "a--rm"},
	} {
		own, err := study.ExpandCommand([]string{"run", test.element}, order, point, "")
		if err != nil || own[1] != test.own {
			t.Errorf("own %s: %q, %v", test.element, own, err)
		}
		foreign, err := study.ExpandForeignCommand([]string{"run", test.element}, order, point, "")
		if refused := test.foreign == "" && test.own != ""; refused != (err != nil) || !refused && foreign[1] != test.foreign {
			t.Errorf("foreign %s: %q, %v", test.element, foreign, err)
		}
		if err != nil && !strings.Contains(err.Error(), "would become a flag") {
			t.Errorf("foreign %s: %v", test.element, err)
		}
	}
	argv, err := study.ExpandForeignCommand([]string{"run", "${args}", "${overrides}"}, order, point, "")
	if want := []string{"run", "--x=-0.5", "--n=-3", "--mode=--rm", "--empty=", "x=-0.5", "n=-3", "mode=--rm", "empty="}; err != nil ||
		!cmp.Equal(argv, want) {
		t.Errorf("%q, %v", argv, err)
	}
}

func TestEnvironment(t *testing.T) {
	order := []string{"lr", "batch-size", "opt.kind", "momentum"}
	point := study.Point{"opt.kind": "<a>", "lr": 1.0, "batch-size": int64(8)}
	got, err := study.Environment(order, point)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`FANTASIA_PARAMETERS={"lr":1.0,"batch-size":8,"opt.kind":"<a>"}`,
		"FANTASIA_PARAM_LR=1",
		"FANTASIA_PARAM_BATCH_SIZE=8",
		"FANTASIA_PARAM_OPT_KIND=<a>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// No variable could say which of two it is about.
	got, err = study.Environment([]string{"C", "x", "c"}, study.Point{"C": 1.0, "c": 2.0, "x": 3.0})
	if diff := cmp.Diff([]string{`FANTASIA_PARAMETERS={"C":1.0,"x":3.0,"c":2.0}`, "FANTASIA_PARAM_X=3"}, got); diff != "" || err != nil {
		t.Errorf("C beside c: %v (-want +got):\n%s", err, diff)
	}
	if _, err := study.Environment(order, study.Point{"lr": math.NaN()}); err == nil {
		t.Error("NaN is taken")
	}
}

// TestPointThroughJSON checks that points keep their types through JSON.
func TestPointThroughJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := study.Point(rapid.MapOf(rapid.String(), rapid.OneOf(
			rapid.Float64().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.String().AsAny(),
			rapid.SampledFrom([]float64{0, 1, 1e20, 1e21, 1e22, math.MaxFloat64, 5e-324}).AsAny(),
		)).Draw(t, "point"))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got study.Point
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
	for _, text := range []string{`[1]`, `{"a": 1e999}`, `{"a"`} {
		var p study.Point
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s is read as %v", text, p)
		}
	}
}
