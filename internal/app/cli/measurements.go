package cli

import (
	"context"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/plot"
)

const (
	// curveRows is how many rows the curve of a metric takes, curveColumns how many
	// columns at most.
	curveRows    = 9
	curveColumns = 72
	// maxCurves is how many metrics are drawn.
	maxCurves = 6
)

// measurements asks for all that a trial's program reported. A server that does not
// know the request keeps none.
func (r *remote) measurements(cmd *cobra.Command, trial string) ([]view.Curve, error) {
	var all []*fantasiav1.Measurement
	err := r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
		return everyPage(func(token string) (next string, err error) {
			page, err := c.ListMeasurements(ctx, connect.NewRequest(&fantasiav1.ListMeasurementsRequest{Parent: trial, PageToken: token}))
			if connect.CodeOf(err) == connect.CodeUnimplemented {
				return "", nil
			}
			if err != nil {
				return "", err
			}
			all = append(all, page.Msg.GetMeasurements()...)
			return page.Msg.GetNextPageToken(), nil
		})
	})
	return view.FromMeasurements(all), err
}

// curves draws what a trial's program reported, one metric below the other.
func curves(w io.Writer, all []view.Curve, width int) error {
	for i := range all {
		c := &all[i]
		n := len(c.Steps)
		title := fmt.Sprintf("%s: %s at step %d", c.Metric, number(c.Values[n-1]), c.Steps[n-1])
		picture := ""
		if i < maxCurves {
			points := make([]plot.Point, n)
			for k := range points {
				points[k] = plot.Point{X: float64(c.Steps[k]), Y: c.Values[k]}
			}
			picture = plot.Text{Width: min(width, curveColumns), Height: curveRows, Title: title, X: "step", Line: true}.Draw(points)
		}
		if picture == "" { // a single point, or no room for a curve
			picture = title
		}
		if err := say(w, "\n%s", picture); err != nil {
			return err
		}
	}
	return nil
}
