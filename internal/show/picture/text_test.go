package picture_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"pgregory.net/rapid"
)

// The example of the README, whose first value is far from the others.
func best() (picture.Text, []picture.Point) {
	failed := picture.Lane{Name: "failed", Mark: '×', Points: []picture.Point{{X: 3}, {X: 12}}}
	return picture.Text{
			Height: 11, Title: "best error, lower is better", X: "evaluations", Low: 0.0239, High: 0.0583,
			Lanes: []picture.Lane{failed, {Name: "infeasible", Mark: '○'}},
		}, []picture.Point{
			{X: 1, Y: 0.9}, {X: 2, Y: 0.0583}, {X: 7, Y: 0.0412}, {X: 9, Y: 0.0311}, {X: 18, Y: 0.0239}, {X: 30, Y: 0.0239},
		}
}

func TestStepsAtThreeWidths(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		text, points := best()
		text.Width = width
		golden(t, fmt.Sprintf("best-%d.txt", width), text.Draw(points)+"\n")
	}
}

// A loss that falls and swings, as a training program reports it.
func TestLines(t *testing.T) {
	var points []picture.Point
	for i := range 200 {
		x := float64(i) / 10
		points = append(points, picture.Point{X: x, Y: math.Exp(-x/4) * (1 + 0.5*math.Sin(3*x))})
	}
	for _, log := range []bool{false, true} {
		text := picture.Text{Width: 80, Height: 10, Title: "loss", X: "step", Line: true, Log: log}
		golden(t, fmt.Sprintf("loss-log-%v.txt", log), text.Draw(points)+"\n")
	}
}

// rows are the labels of a picture's rows and what is drawn in them.
func rows(picture string) (labels, drawn []string) {
	for line := range strings.SplitSeq(picture, "\n") {
		if label, rest, ok := cutEdge(line); ok {
			labels, drawn = append(labels, strings.TrimSpace(label)), append(drawn, rest)
		}
	}
	return labels, drawn
}

func cutEdge(line string) (label, rest string, ok bool) {
	if i := strings.IndexAny(line, "┤│"); i >= 0 {
		return line[:i], line[i+len("│"):], true
	}
	return "", "", false
}

// In each column the curve leaves at the row nearest to the value of a step function,
// which is computed here from its definition; no line is too wide.
func TestStepsAreWhereTheValuesAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 300).Draw(t, "values")
		var points []picture.Point
		for i, v := range values {
			points = append(points, picture.Point{X: float64(i + 1), Y: v})
		}
		text := picture.Text{Width: rapid.IntRange(40, 130).Draw(t, "width"), Height: rapid.IntRange(3, 20).Draw(t, "height"),
			Title: strings.Repeat("title ", 30), X: "x"}
		picture := text.Draw(points)
		for line := range strings.SplitSeq(picture, "\n") {
			if n := utf8.RuneCountInString(line); n > text.Width {
				t.Fatalf("a line has %d columns of %d:\n%s", n, text.Width, picture)
			}
		}
		labels, drawn := rows(picture)
		if len(drawn) > text.Height {
			t.Fatalf("%d rows of at most %d", len(drawn), text.Height)
		}
		top, err := strconv.ParseFloat(labels[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		bottom, err := strconv.ParseFloat(labels[len(labels)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		// The axis below is as wide as the picture.
		axis, _, _ := strings.Cut(picture[strings.LastIndex(picture, "└")+len("└"):], "\n")
		columns := utf8.RuneCountInString(axis)
		for column := range columns {
			value := 0.0
			for i := range values {
				if int(math.Round(float64(i)/float64(len(values)-1)*float64(columns-1))) <= column {
					value = values[i]
				}
			}
			row := int(math.Round((top - value) / (top - bottom) * float64(len(drawn)-1)))
			near := false
			for r := max(0, row-1); r <= min(len(drawn)-1, row+1); r++ { // allow a rounding error
				line := []rune(drawn[r])
				near = near || column < len(line) && strings.ContainsRune("─└┌┴┬├┼", line[column])
			}
			if !near {
				t.Fatalf("column %d: the curve does not leave at row %d:\n%s", column, row, picture)
			}
		}
	})
}

func TestNothingToDraw(t *testing.T) {
	two := []picture.Point{{X: 1, Y: 1}, {X: 2, Y: 2}}
	for name, picture := range map[string]string{
		"one point":       picture.Text{Width: 80, Height: 10}.Draw(two[:1]),
		"no numbers":      picture.Text{Width: 80, Height: 10}.Draw([]picture.Point{{X: 1, Y: math.NaN()}, {X: 2, Y: math.NaN()}}),
		"too little room": picture.Text{Width: 10, Height: 10}.Draw(two),
	} {
		if picture != "" {
			t.Errorf("%s:\n%s", name, picture)
		}
	}
	for _, values := range [][2]float64{{math.MaxFloat64, -math.MaxFloat64}, {5e-324, 0}, {1, math.Nextafter(1, 2)}, {0, 0},
		{math.Inf(1), 1}} {
		picture := picture.Text{Width: 60, Height: 6, Line: true, Log: true}.Draw([]picture.Point{{X: 1, Y: values[0]}, {X: 2, Y: values[1]}})
		if picture == "" || strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
			t.Errorf("%v:\n%s", values, picture)
		}
	}
}

// Studies have letters; a star is where they meet, and an arrow where one is outside.
func TestCompareAsText(t *testing.T) {
	steps := func(values ...float64) (points []picture.Point) {
		for i, v := range values {
			points = append(points, picture.Point{X: float64(i + 1), Y: v})
		}
		return points
	}
	p := &picture.Compare{Objective: picture.Objective{Name: "loss"}, Studies: []picture.Progress{
		{Name: "first", Points: steps(1000, 4, 4, 4, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{Name: "second", Points: steps(6, 6, 4, 4, 4, 4, 3)},
	}}
	drawn := p.Text(60)
	golden(t, "compare.txt", drawn+"\n")
	// The rows of the values, by the axis' numbers, with what is drawn at evaluations 1, 3, 7
	// and 20.
	labels, cells := rows(drawn)
	at := func(value string, evaluation int) rune {
		for i, label := range labels {
			if row := []rune(cells[i]); label == value {
				if column := (evaluation*(60-4) + 10) / 20; column < len(row) {
					return row[column]
				}
			}
		}
		return ' '
	}
	for _, want := range []struct {
		value      string
		evaluation int
		sign       rune
	}{{"6", 1, '*'}, {"6", 2, 'B'}, {"4", 3, '*'}, {"2", 7, 'A'}, {"0", 19, 'A'}, {"6", 19, ' '}} {
		if got := at(want.value, want.evaluation); got != want.sign {
			t.Errorf("at the value %s of evaluation %d there is %q, want %q", want.value, want.evaluation, got, want.sign)
		}
	}
	if !strings.Contains(drawn, "▲ 1 above the range shown, up to 1000") {
		t.Errorf("the first value is not counted:\n%s", drawn)
	}
	if p.Text(12) != "" || (&picture.Compare{}).Text(80) != "" {
		t.Error("without room or studies there is a picture")
	}
}
