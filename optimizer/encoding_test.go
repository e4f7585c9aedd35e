package optimizer_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

func at(v float64) *float64 { return &v }

// drawParameter draws a parameter of any type; parent, if it has values, may
// become a condition.
func drawParameter(t *rapid.T, name string, parent *study.Parameter) study.Parameter {
	p := study.Parameter{Name: name}
	lo := rapid.IntRange(1, 50).Draw(t, "min")
	hi := lo + rapid.IntRange(1, 200).Draw(t, "range")
	p.Type = rapid.SampledFrom([]study.Type{study.Float, study.Int, study.Categorical, study.Ordinal, study.Bool, study.Fixed}).Draw(t, "type")
	switch p.Type {
	case study.Float, study.Int:
		p.Min, p.Max = at(float64(lo)), at(float64(hi))
		p.Scale = rapid.SampledFrom([]study.Scale{study.Linear, study.Log}).Draw(t, "scale")
		if rapid.Bool().Draw(t, "stepped") {
			p.Step = at(1)
		}
	case study.Categorical, study.Ordinal:
		p.Values = []any{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(t, "values")]
	case study.Fixed:
		p.Value = "f"
	}
	if parent != nil && rapid.Bool().Draw(t, "conditional") {
		p.When = map[string][]any{parent.Name: {"a"}}
	}
	return p
}

func drawSpace(t *rapid.T) *space.Space {
	var parameters []study.Parameter
	var parent *study.Parameter
	for i := range rapid.IntRange(1, 6).Draw(t, "parameters") {
		p := drawParameter(t, fmt.Sprintf("p%d", i), parent)
		parameters = append(parameters, p)
		if len(p.Values) > 0 {
			parent = &p
		}
	}
	space, err := celspace.New(parameters, nil, nil)
	if err != nil {
		t.Fatalf("%+v: %v", parameters, err)
	}
	return space
}

// Each point of the cube decodes to a point of the space, and encoding it and decoding
// it again gives the same point: exactly for discrete parameters, up to rounding for
// floats.
func TestEncodingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := drawSpace(t)
		e := optimizer.NewEncoding(space)
		x := make([]float64, e.Dim())
		for i := range x {
			x[i] = rapid.Float64Range(0, 1).Draw(t, "x")
		}
		p := e.Decode(x)
		if err := space.Check(p); err != nil {
			t.Fatalf("%v decodes to %v: %v", x, p, err)
		}
		place := e.Encode(p)
		again := e.Decode(place)
		for _, parameter := range space.Parameters() {
			value, back := p[parameter.Name], again[parameter.Name]
			if f, ok := value.(float64); ok && parameter.Step == nil {
				if g, ok := back.(float64); !ok || math.Abs(f-g) > 1e-12*math.Abs(f) {
					t.Fatalf("%s is %v, and %v after a round trip", parameter.Name, value, back)
				}
			} else if value != back {
				t.Fatalf("%s is %v, and %v after a round trip", parameter.Name, value, back)
			}
		}
		for i, c := range e.Columns() {
			if _, active := p[c.Parameter.Name]; !active && place[i] != 0.5 {
				t.Fatalf("inactive %s lies at %v", c.Parameter.Name, place[i])
			}
			if place[i] < 0 || place[i] > 1 {
				t.Fatalf("%s lies at %v", c.Parameter.Name, place[i])
			}
		}
	})
}

func TestEncodingColumns(t *testing.T) {
	e := optimizer.NewEncoding(optimizertest.Mixed(t))
	type column struct {
		Name        string
		Levels      int
		Categorical bool
	}
	var got []column
	for _, c := range e.Columns() {
		got = append(got, column{c.Parameter.Name, c.Levels, c.Categorical()})
	}
	// epochs is fixed and has no column.
	want := []column{
		{"lr", 0, false}, {"width", 241, false}, {"drop", 0, false}, {"decay", 5, false}, {"solver", 3, true},
		{"momentum", 0, false}, {"nesterov", 2, false}, {"warmup", 10, false}, {"batch", 3, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestDecodeTakesAnyNumber(t *testing.T) {
	e := optimizer.NewEncoding(optimizertest.Cube(t, 1, 2, 4))
	for u, want := range map[float64]float64{-1: 2, 0: 2, 0.5: 3, 1: 4, 7: 4, math.Inf(1): 4, math.Inf(-1): 2} {
		if got := e.Decode([]float64{u})["x1"]; got != want {
			t.Errorf("%v decodes to %v, want %v", u, got, want)
		}
	}
	if got := e.Decode([]float64{math.NaN()})["x1"]; got != 3.0 {
		t.Errorf("NaN decodes to %v, want the middle", got)
	}
}

// The bins of a column cover the unit interval, and each decodes to its value.
func TestBins(t *testing.T) {
	for _, p := range []study.Parameter{
		{Name: "int", Type: study.Int, Min: at(1), Max: at(7)},
		{Name: "log", Type: study.Int, Min: at(1), Max: at(100), Scale: study.Log},
		{Name: "logit", Type: study.Int, Min: at(1), Max: at(99), Scale: study.Logit},
		{Name: "grid", Type: study.Float, Min: at(0), Max: at(1), Step: at(0.1)},
		{Name: "ordinal", Type: study.Ordinal, Values: []any{"s", "m", "l"}},
		{Name: "bool", Type: study.Bool},
	} {
		s, err := celspace.New([]study.Parameter{p}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := optimizer.NewEncoding(s).Columns()[0]
		before := 0.0
		for k := range c.Levels {
			low, high := c.Bin(p.ToUnit(p.At(k)))
			if math.Abs(low-before) > 1e-12 || !(high > low) {
				t.Fatalf("%s: the bin of level %d is %g to %g, the one before ends at %g", p.Name, k, low, high, before)
			}
			for _, u := range []float64{low + 1e-9*(high-low), high - 1e-9*(high-low)} {
				if got, _ := p.Index(p.FromUnit(u)); got != k {
					t.Errorf("%s: %g decodes to level %d, its bin is of level %d", p.Name, u, got, k)
				}
			}
			before = high
		}
		if before != 1 {
			t.Errorf("%s: the last bin ends at %g", p.Name, before)
		}
	}
	if low, high := (optimizer.Column{}).Bin(0.3); low != 0.3 || high != 0.3 {
		t.Errorf("a continuous column has a bin from %g to %g", low, high)
	}
}
