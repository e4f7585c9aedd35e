package picture_test

import (
	"encoding/xml"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the pictures in testdata; look at them before you commit them")

// golden compares a picture with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// node is an element of a picture.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []node     `xml:",any"`
}

func (n *node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (n *node) number(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(n.attr(name), 64)
	if err != nil {
		t.Fatalf("%s of <%s>: %v", name, n.XMLName.Local, err)
	}
	return v
}

// elements draws a picture and returns its elements of a kind and class, at any depth.
func elements(t *testing.T, p picture.Picture, kind, class string) (found []node) {
	t.Helper()
	var root node
	if err := xml.Unmarshal(p.SVG(picture.Frame{}), &root); err != nil {
		t.Fatal(err)
	}
	var visit func(n node)
	visit = func(n node) {
		if n.XMLName.Local == kind && n.attr("class") == class {
			found = append(found, n)
		}
		for _, inner := range n.Nodes {
			visit(inner)
		}
	}
	visit(root)
	return found
}

// reading maps positions on an axis to values, like a person who reads numbers off a
// picture with a ruler.
type reading struct {
	at, value [2]float64
	log       bool
}

func axis(t *testing.T, c picture.Picture, name string, log bool) reading {
	t.Helper()
	r := reading{log: log}
	labels := elements(t, c, "text", "number "+name)
	for i, n := range []node{labels[0], labels[len(labels)-1]} {
		v, err := strconv.ParseFloat(n.Text, 64)
		if err != nil {
			t.Fatal(err)
		}
		r.at[i], r.value[i] = n.number(t, name), v
		if name == "y" {
			r.at[i] -= 4 // from the text's base line to its middle
		}
	}
	return r
}

func (r reading) readAt(at float64) float64 {
	share := (at - r.at[0]) / (r.at[1] - r.at[0])
	if r.log {
		return r.value[0] * math.Pow(r.value[1]/r.value[0], share)
	}
	return r.value[0] + share*(r.value[1]-r.value[0])
}

func run() *picture.Chart {
	c := &picture.Chart{
		X: "evaluations", Y: "error, lower is better", FromZero: true, Low: 0.1, High: 0.9,
		Lanes: []picture.Lane{{Name: "failed", Mark: '×', Points: []picture.Point{{X: 4, Note: "trial 4 failed"}}},
			{Name: "infeasible", Mark: '○'}},
	}
	dots := picture.Series{Name: "evaluation"}
	best := picture.Series{Name: "best so far", Kind: picture.Steps}
	low := math.Inf(1)
	for i, v := range []float64{0.9, 0.35, 7.25, math.NaN(), 0.42, 0.2, 0.31, -3, 0.1, 0.15} {
		if math.IsNaN(v) {
			continue
		}
		dots.Points = append(dots.Points, picture.Point{X: float64(i + 1), Y: v, Note: "value " + strconv.FormatFloat(v, 'g', -1, 64)})
		low = min(low, v)
		best.Points = append(best.Points, picture.Point{X: float64(i + 1), Y: low})
	}
	c.Series = []picture.Series{dots, best}
	return c
}

// The values read off the axes are the drawn values, to a pixel.
func TestNumbersCanBeReadBack(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := run()
		c.Log = log
		x, y := axis(t, c, "x", false), axis(t, c, "y", log)
		var got, want [][2]float64
		for _, n := range elements(t, c, "circle", "dot") {
			got = append(got, [2]float64{x.readAt(n.number(t, "cx")), y.readAt(n.number(t, "cy"))})
		}
		for _, p := range c.Series[0].Points {
			if p.Y >= c.Low && p.Y <= c.High {
				want = append(want, [2]float64{p.X, p.Y})
			}
		}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 0.005 })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("log %v: the dots (-drawn +read):\n%s", log, diff)
		}
	}
}

// The best value is a step function: it holds until the next evaluation.
func TestBestSoFarIsInSteps(t *testing.T) {
	c := run()
	c.Low, c.High = 0, 0
	x, y := axis(t, c, "x", false), axis(t, c, "y", false)
	lines := elements(t, c, "path", "line c0")
	path := lines[0].attr("d")
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1", len(lines))
	}
	var got [][2]float64
	for _, m := range regexp.MustCompile(`[MHV]([-\d.]+)(?: ([-\d.]+))?`).FindAllStringSubmatch(path, -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		switch m[0][0] {
		case 'M':
			w, _ := strconv.ParseFloat(m[2], 64)
			got = append(got, [2]float64{x.readAt(v), y.readAt(w)})
		case 'H':
			got = append(got, [2]float64{x.readAt(v), got[len(got)-1][1]})
		case 'V':
			got = append(got, [2]float64{got[len(got)-1][0], y.readAt(v)})
		}
	}
	points := c.Series[1].Points
	want := [][2]float64{{points[0].X, points[0].Y}}
	for i, p := range points[1:] {
		want = append(want, [2]float64{p.X, points[i].Y}, [2]float64{p.X, p.Y})
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 0.02 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("the curve (-drawn +read):\n%s", diff)
	}
}

// Points outside the range and those without a value are marked and counted.
func TestNothingIsHidden(t *testing.T) {
	c := run()
	var tips []string
	for _, n := range elements(t, c, "path", "mark") {
		for _, tip := range n.Nodes {
			tips = append(tips, tip.Text)
		}
	}
	for _, n := range elements(t, c, "path", "sign c1") {
		for _, tip := range n.Nodes {
			tips = append(tips, tip.Text)
		}
	}
	if diff := cmp.Diff([]string{"value 7.25", "value -3", "trial 4 failed"}, tips); diff != "" {
		t.Errorf("the marks (-want +got):\n%s", diff)
	}
	var legend []string
	for _, n := range elements(t, c, "text", "legend") {
		legend = append(legend, n.Text)
	}
	if diff := cmp.Diff([]string{"evaluation", "best so far", "1 above, up to 7.25", "1 below, down to -3", "failed (1)"},
		legend); diff != "" {
		t.Errorf("the legend (-want +got):\n%s", diff)
	}
}

// Evaluations that have failed have no value. Their marks are drawn all the same.
func TestFailuresWithoutAValueAreMarked(t *testing.T) {
	failed := []picture.Evaluation{{Trial: 1, At: []float64{0.01}, State: picture.Completed, Value: 1},
		{Trial: 2, At: []float64{0.1}, State: picture.Failed, Value: math.NaN()}}
	for name, p := range map[string]picture.Picture{
		"slice": &picture.Slice{Objective: loss, Parameter: rate, Evaluations: failed},
		"history": &picture.History{Objective: loss, Evaluations: []picture.Evaluation{{Trial: 1, X: 1, State: picture.Completed, Value: 1},
			{Trial: 2, X: 2, State: picture.Failed, Value: math.NaN()}}},
	} {
		marks := elements(t, p, "path", "sign c1")
		if len(marks) != 2 || marks[0].attr("data-trial") != "2" && marks[1].attr("data-trial") != "2" { // one is the legend's
			t.Errorf("%s: the marks of failures are %+v", name, marks)
		}
	}
}

// Every light colour has a dark one, fonts come from the system, and long names are
// shortened, with the whole name in the tooltip.
func TestStyle(t *testing.T) {
	c := titled{run(), strings.Repeat("long ", 40)}
	light, dark, ok := strings.Cut(string(c.SVG(picture.Frame{})), "@media (prefers-color-scheme:dark){")
	dark, _, _ = strings.Cut(dark, "</style>")
	properties := func(s string) (found []string) {
		for _, m := range regexp.MustCompile(`(--[a-z0-9-]+):#`).FindAllStringSubmatch(s, -1) {
			found = append(found, m[1])
		}
		return found
	}
	if diff := cmp.Diff(properties(light), properties(dark)); !ok || len(properties(dark)) < 10 || diff != "" {
		t.Errorf("colours (-light +dark):\n%s", diff)
	}
	if !strings.Contains(light, "system-ui") {
		t.Error("the picture does not use the system's font")
	}
	title := elements(t, c, "text", "title")[0]
	if !strings.HasSuffix(title.Text, "…") || len(title.Text) > 70 || title.Nodes[0].Text != c.title {
		t.Errorf("the title is %q, its tip %q", title.Text, title.Nodes[0].Text)
	}
}

// titled is a picture with a title.
type titled struct {
	picture.Picture
	title string
}

// SVG implements picture.Picture.
func (p titled) SVG(f picture.Frame) []byte {
	f.Title = p.title
	return p.Picture.SVG(f)
}

func TestChartOfARun(t *testing.T) {
	golden(t, "run.svg", string(run().SVG(picture.Frame{Title: "svm"})))
}

// Charts of curves are well-formed SVG that name what they show; several decades are
// labelled.
func TestChartsOfCurves(t *testing.T) {
	points := func(values ...float64) (p []picture.Point) {
		for i, v := range values {
			p = append(p, picture.Point{X: float64(i + 1), Y: v})
		}
		return p
	}
	steep := picture.Series{Name: "steep", Kind: picture.Lines, Points: points(1e3, 1e-3), Low: []float64{1e2, 1e-4},
		High: []float64{1e4, 1e-2}}
	flat := picture.Series{Name: "flat", Kind: picture.Lines, Color: 1, Dash: 2, Points: points(2, 2), Low: []float64{1, 1},
		High: []float64{3, 3}}
	for _, tt := range []struct {
		name   string
		log    bool
		series []picture.Series
		want   []string
	}{
		{"several decades", true, []picture.Series{steep, flat}, []string{"steep", "flat", ">0.0001<", ">10000<"}},
		{"one decade", true, []picture.Series{flat}, []string{">2<"}},
		{"values", false, []picture.Series{flat}, []string{"flat"}},
		{"nothing yet", true, []picture.Series{{Name: "empty", Kind: picture.Lines}}, []string{"empty"}},
		{"a constant", true, []picture.Series{{Name: "constant", Kind: picture.Lines, Points: points(1)}}, []string{"constant"}},
		{"huge", false, []picture.Series{{Name: "huge", Points: points(math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.NaN(), 0)}},
			[]string{"huge"}},
		{"tiny", true, []picture.Series{{Name: "tiny", Points: points(5e-324, 1e-310, 0)}}, []string{"tiny"}},
		{"close", false, []picture.Series{{Name: "close", Points: points(1, math.Nextafter(1, 2))}}, []string{"close"}},
		{"odd names", false, []picture.Series{{Name: "a<b&\x00\xff"}}, []string{"a&lt;b&amp;\ufffd\ufffd"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := picture.Chart{X: "evaluations", Y: "regret", Log: tt.log, Series: tt.series}
			svg := c.SVG(picture.Frame{Title: "a title"})
			for _, want := range append(tt.want, "a title", "evaluations", "regret") {
				if !strings.Contains(string(svg), want) {
					t.Errorf("the plot lacks %q", want)
				}
			}
			valid(t, svg)
		})
	}
}
