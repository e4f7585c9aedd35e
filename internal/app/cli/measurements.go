package cli

import (
	"fmt"
	"io"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
)

// maxCurves is how many metrics are drawn.
const maxCurves = 6

// curves draws what a trial's program reported, one metric below the other.
func curves(w io.Writer, all []view.Curve, width int) error {
	for i := range all {
		c := &all[i]
		n := len(c.Steps)
		title := fmt.Sprintf("%s: %s at step %d", c.Metric, number(c.Values[n-1]), c.Steps[n-1])
		drawn := ""
		if i < maxCurves {
			drawn = figure.Sketch(c, title, width)
		}
		if drawn == "" { // a single point, or no room for a curve
			drawn = title
		}
		if err := say(w, "\n%s", drawn); err != nil {
			return err
		}
	}
	return nil
}
