package transfer_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate/transfer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// read returns the sources of a problem over the unit cube of three columns.
func read(t *testing.T, all ...optimizer.Earlier) (transfer.Sources, *optimizer.Encoding) {
	t.Helper()
	space := optimizertest.Cube(t, 3, 0, 1)
	encoding := optimizer.NewEncoding(space)
	sources, fitted, err := transfer.Read(t.Context(), &optimizer.Problem{Space: space, Seed: 1, Earlier: all}, encoding, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := transfer.Read(t.Context(), &optimizer.Problem{Space: space, Seed: 2, Earlier: all}, encoding, fitted)
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) > 0 {
		at := mat.NewDense(2, 3, []float64{0.1, 0.9, 0.4, 0.6, 0.2, 0.5})
		if !mat.EqualApprox(sources.Values(at), again.Values(at), 1e-9) {
			t.Error("the models differ when their hyperparameters are known")
		}
	}
	return sources, encoding
}

// line is an earlier study of n points whose cost is f of x1.
func line(name string, n int, f func(x float64) float64) optimizer.Earlier {
	rng := optimizer.NewRand(uint64(n), len(name))
	e := optimizer.Earlier{Name: name}
	for range n {
		p := study.Point{"x1": rng.Float64(), "x2": rng.Float64()}
		e.Points, e.Costs = append(e.Points, p), append(e.Costs, f(p["x1"].(float64)))
	}
	return e
}

// A source knows the ranks of its outcomes, whatever their unit; it does not depend on a parameter that the earlier
// study did not have.
func TestValues(t *testing.T) {
	up := line("up", 200, func(x float64) float64 { return math.Exp(30 * x) })
	sources, _ := read(t, up, line("down", 60, func(x float64) float64 { return -x }))
	at := mat.NewDense(3, 3, []float64{0.1, 0.5, 0.2, 0.5, 0.5, 0.9, 0.9, 0.5, 0.2})
	values := sources.Values(at)
	for i := range 2 {
		if values.At(i, 0) >= values.At(i+1, 0) || values.At(i, 1) <= values.At(i+1, 1) {
			t.Errorf("values %v, want the first column to grow and the second to fall", mat.Formatted(values))
		}
	}
	// x1 is uniform, so its median has the score 0; of 200 points the better half are among the 128 that are kept.
	if v := values.At(1, 1); math.Abs(v) > 0.4 {
		t.Errorf("the middle of a line has the score %.2f, want about 0", v)
	}
	moved := mat.DenseCopyOf(at)
	moved.Set(0, 2, 0.8)
	if !mat.Equal(values, sources.Values(moved)) {
		t.Error("a parameter that no earlier study had changes the values")
	}
	const step = 1e-6
	for s, slopes := range sources.Slopes(at) {
		for c := range 3 {
			up, down := mat.DenseCopyOf(at), mat.DenseCopyOf(at)
			for i := range 3 {
				up.Set(i, c, at.At(i, c)+step)
				down.Set(i, c, at.At(i, c)-step)
			}
			for i := range 3 {
				want := (sources.Values(up).At(i, s) - sources.Values(down).At(i, s)) / (2 * step)
				if got := slopes.At(i, c); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("slope of source %d at point %d by column %d: %v, want %v", s, i, c, got, want)
				}
			}
		}
	}
}

// Studies without enough points in this study's space are left out.
func TestLeftOut(t *testing.T) {
	few := line("few", 3, math.Sqrt)
	other := optimizer.Earlier{Name: "other"}
	for i := range 9 {
		other.Points, other.Costs = append(other.Points, study.Point{"y": float64(i)}), append(other.Costs, 1)
	}
	text := line("text", 9, math.Sqrt)
	for _, p := range text.Points {
		p["x1"] = fmt.Sprint(p["x1"])
	}
	if sources, _ := read(t, few, other, text); sources != nil {
		t.Errorf("%d sources are left, the first is %s", len(sources), sources[0].Name)
	}
}

// The first points are a greedy portfolio: of two sources that want opposite ends, one point serves each.
func TestFirst(t *testing.T) {
	sources, _ := read(t, line("up", 50, func(x float64) float64 { return x }), line("down", 51, func(x float64) float64 { return -x }),
		line("higher", 52, func(x float64) float64 { return -x }))
	at := mat.NewDense(5, 3, []float64{0, 0, 0, 0.25, 0, 0, 0.5, 0, 0, 0.75, 0, 0, 1, 0, 0})
	if got, from := sources.First(at, nil, nil); got != 4 || !slices.Equal(from, []string{"down", "higher"}) {
		t.Errorf("the first point is %d from %v, want the end that two of three sources want", got, from)
	}
	if got, from := sources.First(at, mat.NewDense(1, 3, []float64{1, 0, 0}), nil); got != 0 || !slices.Equal(from, []string{"up"}) {
		t.Errorf("beside that point the next is %d from %v, want the other end", got, from)
	}
	// Of 101 places the best are at the end. Among the next three, one takes a tenth of the time; the quickest of all is too bad.
	many, longer := mat.NewDense(101, 3, nil), make([]float64, 101)
	for i := range 101 {
		many.Set(i, 0, float64(i)/100)
	}
	up, _ := read(t, line("up", 50, func(x float64) float64 { return -x }))
	longer[98], longer[20] = math.Log(0.1), -20
	if got, _ := up.First(many, nil, nil); got != 100 {
		t.Errorf("the best place is %d, want the end", got)
	}
	if got, _ := up.First(many, nil, longer); got != 98 {
		t.Errorf("the first point is %d, want the quick one that is nearly as good", got)
	}
}

// By hand: the sources move the prediction by their weights times their values, and what is left is the study's own.
func TestShares(t *testing.T) {
	sources, _ := read(t, line("up", 50, func(x float64) float64 { return x }), line("down", 51, func(x float64) float64 { return -x }))
	x := []float64{0.1, 0.4, 0.5}
	values := sources.Values(mat.NewDense(1, 3, x)).RawRowView(0)
	if !(values[0] < -1 && values[1] > 1) {
		t.Fatalf("the sources predict %v", values)
	}
	for _, c := range []struct {
		weights []float64
		own     float64
		want    string
	}{
		{[]float64{0.9 / -values[0], 0}, -0.1, "; the prediction rests on earlier studies: up (90%)"},
		{[]float64{0.9 / -values[0], 0}, 0.1, "; the prediction rests on earlier studies: up (90%)"},
		{[]float64{0.4 / -values[0], -0.5 / values[1]}, -0.1, "; the prediction rests on earlier studies: down upside down (50%), up (40%)"},
		{[]float64{0.24 / -values[0], 0}, -0.76, ""},         // too little
		{[]float64{0.9 / values[0], 0.1 / values[1]}, 1, ""}, // they speak against it
		{[]float64{0.3 / -values[0], 0.3 / values[1]}, -0.4, "; the prediction rests on earlier studies: up (30%)"},
	} {
		w := &transfer.Weighted{Sources: sources, Weights: c.weights}
		mean := c.own + c.weights[0]*values[0] + c.weights[1]*values[1]
		if got := w.Note(x, mean); got != c.want {
			t.Errorf("with the weights %v and %g of its own: %q, want %q", c.weights, c.own, got, c.want)
		}
	}
	if got := (*transfer.Weighted)(nil).Note(x, -1); got != "" {
		t.Errorf("without earlier studies: %q", got)
	}
}
