package hebo

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// squeezedOf returns the data of two objectives after observations with these costs, and then the further ones.
// The first objective is maximised.
func squeezedOf(t *testing.T, costs [][2]float64, references [2]*float64, further ...optimizer.Observation) [2]*surrogate.Data {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Objectives: []study.Objective{
		{Metric: "a", Direction: study.Maximize, Reference: references[0]},
		{Metric: "b", Direction: study.Minimize, Reference: references[1]},
	}}
	for i, c := range costs {
		p.Observations = append(p.Observations, optimizer.Observation{
			Point: study.Point{"x1": float64(i) / 10}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{-c[0], c[1]},
		})
	}
	p.Observations = append(p.Observations, further...)
	r := &optimizer.Request{Problem: p, Encoding: optimizer.NewEncoding(p.Space)}
	o := surrogate.DefaultOptions()
	o.Transform = false
	data := squeezed(reaches(r), []*surrogate.Data{surrogate.Observe(r.Alone(0), r.Encoding, o), surrogate.Observe(r.Alone(1), r.Encoding, o)})
	return [2]*surrogate.Data(data)
}

// The front of the costs is 0 to 4 in both objectives. Values up to 8 keep their distances, and
// 4·log(1 + d/4) is what remains of a distance d beyond.
func TestValuesBeyondTheFrontAreSqueezed(t *testing.T) {
	costs := [][2]float64{{0, 4}, {1, 2}, {4, 0}, {5, 5}, {8, 8}, {5000, 6}, {7, 900}}
	better, further := 3.0, -20.0
	outside := optimizer.Observation{ // it would be the whole front
		Point: study.Point{"x1": 0.95}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{50, -50}, Excess: []float64{1},
	}
	failed := optimizer.Observation{Point: study.Point{"x1": 0.9}, Outcome: optimizer.OutcomeFailed}
	for name, c := range map[string]struct {
		references [2]*float64
		further    []optimizer.Observation
		first      [2]float64 // the width, and the bound beyond which the first objective is squeezed
	}{
		"plain":                       {first: [2]float64{4, 8}},
		"a point outside of limits":   {further: []optimizer.Observation{outside}, first: [2]float64{4, 8}},
		"a failure":                   {further: []optimizer.Observation{failed}, first: [2]float64{4, 8}},
		"a reference":                 {references: [2]*float64{&further}, first: [2]float64{20, 40}},
		"a reference before the best": {references: [2]*float64{&better}, first: [2]float64{4, 8}},
	} {
		data := squeezedOf(t, costs, c.references, c.further...)
		for k, want := range [2][2]float64{c.first, {4, 8}} {
			sign := []float64{-1, 1}[k]
			at := func(cost float64) float64 { return data[k].Standard(sign * cost) }
			unit := (at(4) - at(0)) / 4
			width, high := want[0], want[1]
			for _, cost := range []float64{1, 4, 8, 900, 5000} {
				expected := cost
				if cost > high {
					expected = high + width*math.Log1p((cost-high)/width)
				}
				if got := (at(cost) - at(0)) / unit; math.Abs(got-expected) > 1e-9*expected {
					t.Errorf("%s: %g of objective %d becomes %g, want %g", name, cost, k, got, expected)
				}
			}
		}
	}
}

// A front of one point has a tenth of the distance to the median as its width.
func TestFrontOfOnePointIsSqueezed(t *testing.T) {
	data := squeezedOf(t, [][2]float64{{0, 0}, {5, 20}, {10, 40}, {20, 60}, {1000, 80}}, [2]*float64{})
	at := func(cost float64) float64 { return data[0].Standard(-cost) }
	unit := at(1) - at(0)
	if got, want := (at(1000)-at(0))/unit, 1+math.Log1p(999); math.Abs(got-want) > 1e-9*want {
		t.Errorf("1000 becomes %g, want %g", got, want)
	}
}

// Without huge values, or without any, the data stay as they are.
func TestNothingIsSqueezed(t *testing.T) {
	for _, costs := range [][][2]float64{nil, {{1, 1}, {1, 1}}, {{0, 1}, {1, 0}, {1.5, 1.5}}, {{0, 1}, {1, 0}, {101, 100}}} {
		for k, d := range squeezedOf(t, costs, [2]*float64{}) {
			if again := d.Beyond(1e9, 1); again != d {
				t.Errorf("objective %d of %v is squeezed", k, costs)
			}
		}
	}
}

// ofOne returns the data of a function of one parameter at 40 points, in all their forms.
func ofOne(t *testing.T, value func(u float64) float64) *surrogate.Data {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize}
	for i := range 40 {
		u := float64(i) / 39
		p.Observations = append(p.Observations, optimizer.Observation{
			Point: study.Point{"x1": u}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value(u)},
		})
	}
	return surrogate.Observe(p, optimizer.NewEncoding(p.Space), surrogate.DefaultOptions())
}

// A form takes the place of the plain one if the observations are more likely in it and it predicts the values that
// matter better: an exponential is smooth in its logarithm. A bowl stays as it is, and so does a function that
// is almost zero in places, and smooth elsewhere.
func TestForm(t *testing.T) {
	decades := func(u float64) float64 { return math.Exp(9*u + math.Sin(9*u)) }
	for name, c := range map[string]struct {
		value func(u float64) float64
		end   float64
		plain bool
	}{
		"decades":                           {decades, 100, false},
		"decades, and nothing that matters": {decades, 0, true},
		"a bowl":                            {func(u float64) float64 { return (u - 0.3) * (u - 0.3) }, 1, true},
		"zeros beside a smooth function":    {func(u float64) float64 { return math.Max(1e-30, math.Sin(7*u)) }, 1, true},
	} {
		d := ofOne(t, c.value)
		if len(d.Forms()) < 2 {
			t.Fatalf("%s: only plain", name)
		}
		options := surrogate.Options{Kernel: surrogate.Matern52, Effort: surrogate.EffortFull}
		m, err := form(t.Context(), d, options, c.end, nil, optimizer.NewRand(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if plain := m.Data.Transform() == d.Plain().Transform(); plain != c.plain {
			t.Errorf("%s: %s, plain: %v, want %v", name, m.Data.Transform().Kind(), plain, c.plain)
		}
	}
}

// Values beyond the reference add nothing to the hypervolume: the front is found as well if they
// grow with the fifth power.
func TestFrontAmongHugeValues(t *testing.T) {
	f := vector(t, "branin-currin")
	huge := f
	huge.Value = func(x []float64) []float64 {
		y := f.Value(x)
		for k, r := range f.Reference {
			if beyond := y[k]/r - 1; beyond > 0 {
				y[k] = r * (1 + beyond + math.Pow(beyond, 5))
			}
		}
		return y
	}
	change := func(p *optimizer.Problem) {
		for k := range p.Objectives {
			p.Objectives[k].Reference = nil
		}
	}
	usual, got := missing(t, New(DefaultOptions()), f, 48, change), missing(t, New(DefaultOptions()), huge, 48, change)
	t.Logf("missing: %.3g, and %.3g with huge values", usual, got)
	if got > 1.5*usual {
		t.Errorf("%.3g of the hypervolume are missing, without the huge values %.3g", got, usual)
	}
}
