package picture_test

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// pointsOf returns the corners of a line, as they are in the picture.
func pointsOf(t *testing.T, path string) (points [][2]float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`[ML]([-\d.]+) ([-\d.]+)`).FindAllStringSubmatch(path, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		points = append(points, [2]float64{x, y})
	}
	return points
}

var nearby = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.01*max(0.1, math.Abs(a), math.Abs(b)) })

// What the model expected, its band, the evaluations, and where the chosen and the pending
// points are can be read off the axes.
func TestChoiceCanBeReadBack(t *testing.T) {
	unit := picture.Parameter{Name: "dropout", Low: 0, High: 1}
	k := &picture.Choice{
		Objective: loss, Parameter: unit, At: []float64{0, 0.25, 0.5, 1}, Mean: []float64{3, 2, 1, 2.5}, Low: []float64{2, 1.5, 0.8, 2},
		High: []float64{4, 2.5, 1.2, 3}, Here: 1, Trial: 9,
		Evaluated: []picture.Evaluation{
			{Trial: 1, At: []float64{0.8}, State: picture.Completed, Value: 2.2},
			{Trial: 2, At: []float64{0.1}, State: picture.Completed, Value: 3.5},
			{Trial: 3, At: []float64{0.6}, State: picture.Failed, Value: math.NaN()},
			{Trial: 4, At: []float64{math.NaN()}, State: picture.Completed, Value: 1},
		},
		Pending: []picture.Evaluation{{Trial: 8, At: []float64{0.75}, State: picture.Running},
			{Trial: 7, At: []float64{0.5}, State: picture.Running}},
	}
	x, y := axis(t, k, "x", false), axis(t, k, "y", false)
	var line, low [][2]float64
	for i, at := range k.At {
		line, low = append(line, [2]float64{at, k.Mean[i]}), append(low, [2]float64{at, k.Low[i]})
	}
	read := func(points [][2]float64) (values [][2]float64) {
		for _, p := range points {
			values = append(values, [2]float64{x.readAt(p[0]), y.readAt(p[1])})
		}
		return values
	}
	if d := cmp.Diff(line, read(pointsOf(t, elements(t, k, "path", "line c0")[0].attr("d"))), nearby); d != "" {
		t.Errorf("the expected values (-given +read):\n%s", d)
	}
	if d := cmp.Diff(low, read(pointsOf(t, elements(t, k, "path", "band c0")[0].attr("d")))[:4], nearby); d != "" {
		t.Errorf("the lower end of the band (-given +read):\n%s", d)
	}
	var dots [][2]float64
	for _, n := range elements(t, k, "circle", "dot") {
		dots = append(dots, [2]float64{n.number(t, "cx"), n.number(t, "cy")})
	}
	if d := cmp.Diff([][2]float64{{0.1, 3.5}, {0.8, 2.2}}, read(dots), nearby); d != "" {
		t.Errorf("the evaluations (-given +read):\n%s", d)
	}
	marks := map[string][]float64{}
	for trial, n := range map[string]node{"chosen": marked(t, k, "9"), "pending 7": marked(t, k, "7"), "pending 8": marked(t, k, "8"),
		"failed": marked(t, k, "3")} {
		marks[trial] = []float64{n.number(t, "data-x")}
		if n.attr("data-y") != "" {
			marks[trial] = append(marks[trial], n.number(t, "data-y"))
		}
	}
	if d := cmp.Diff(map[string][]float64{"chosen": {0.25, 2}, "pending 7": {0.5}, "pending 8": {0.75}, "failed": {0.6}}, marks); d != "" {
		t.Errorf("the marks (-given +read):\n%s", d)
	}
}

// marked returns the only mark of a trial.
func marked(t *testing.T, p picture.Picture, trial string) (found node) {
	t.Helper()
	count := 0
	for _, kind := range []struct{ kind, class string }{{"path", "sign c3"}, {"path", "sign c2"}, {"circle", "sign c1"}, {"circle", "dot"}} {
		for _, n := range elements(t, p, kind.kind, kind.class) {
			if n.attr("data-trial") == trial {
				found = n
				count++
			}
		}
	}
	if count != 1 {
		t.Fatalf("%d marks of trial %s, want 1", count, trial)
	}
	return found
}

// The acquisition function, the chosen point and those that were pending can be read off.
func TestAcquisitionCanBeReadBack(t *testing.T) {
	k := &picture.Acquisition{
		Parameter: rate, Function: "expected improvement", At: []float64{1e-4, 1e-3, 1e-2, 1e-1, 1}, Worth: []float64{0, 0.25, 1, 0.5, 0.1},
		Here: 2, Trial: 9,
		Pending: []picture.Evaluation{{Trial: 8, At: []float64{0.1}, State: picture.Running}},
	}
	x, y := axis(t, k, "x", true), axis(t, k, "y", false)
	var want, got [][2]float64
	for i, at := range k.At {
		want = append(want, [2]float64{math.Log10(at), k.Worth[i]})
	}
	for _, p := range pointsOf(t, elements(t, k, "path", "line c2")[0].attr("d")) {
		got = append(got, [2]float64{math.Log10(x.readAt(p[0])), y.readAt(p[1])})
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 0.02 })); d != "" {
		t.Errorf("the function (-given +read):\n%s", d)
	}
	if n := marked(t, k, "9"); n.number(t, "data-x") != 1e-2 || n.number(t, "data-y") != 1 {
		t.Errorf("the chosen point is at %s, %s", n.attr("data-x"), n.attr("data-y"))
	}
	if n := marked(t, k, "8"); n.number(t, "data-x") != 0.1 {
		t.Errorf("the pending point is at %s", n.attr("data-x"))
	}
}
