package picture_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// The share at a value counts all that are at most as large, whatever state others are in and
// however many are alike.
func TestEDFCountsWhatIsAtMostTheValue(t *testing.T) {
	list := []picture.Evaluation{}
	for i, v := range []float64{3, 1, 2, 2, math.NaN()} {
		list = append(list, picture.Evaluation{Trial: i + 1, X: float64(i + 1), State: picture.Completed, Value: v})
	}
	list = append(list, picture.Evaluation{Trial: 9, X: 6, State: picture.Failed, Value: 0})
	svg := (&picture.EDF{Objective: picture.Objective{Name: "loss"}, Evaluations: list}).SVG(picture.Frame{})
	valid(t, svg)
	// The vertical axis has 0 at 352 pixels and 1 at 64: a quarter is 280, three quarters are 136.
	for _, want := range []string{" 280.00H374.35V208.00H374.35V136.00H698.00V64.00", "of 4 values"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("there is no %q in:\n%s", want, svg)
		}
	}
	for name, values := range map[string][]float64{"one": {5}, "alike": {5, 5, 5}, "none": nil, "huge": {1e300, -1e300, 1}} {
		list = nil
		for i, v := range values {
			list = append(list, picture.Evaluation{Trial: i + 1, X: 1, State: picture.Completed, Value: v})
		}
		t.Run(name, func(t *testing.T) { valid(t, (&picture.EDF{Evaluations: list}).SVG(picture.Frame{})) })
	}
}
