package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/figure"
)

// maxCurves is how many metrics are drawn.
const maxCurves = 6

// listMeasurements fetches all that a trial's program reported. A server that does not
// know the request keeps none.
func listMeasurements(ctx context.Context, c service, trial string) ([]view.Curve, error) {
	var all []*fantasiav1.Measurement
	err := everyPage(func(token string) (string, error) {
		page, err := send(ctx, c, service.ListMeasurements, &fantasiav1.ListMeasurementsRequest{Parent: trial, PageToken: token})
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return "", nil
		}
		all = append(all, page.GetMeasurements()...)
		return page.GetNextPageToken(), err
	})
	return view.FromMeasurements(all), err
}

const (
	// probes is how many ended trials without a curve show that a study has none.
	probes = 3
	// curvesAtOnce is how many curves are asked for within the time of one call.
	curvesAtOnce = 100
)

// addCurves asks for what the programs of ended trials reported, and adds it to the
// trials. It gives up if none of the first ones reported the metric more than once.
func (r *remote) addCurves(cmd *cobra.Command, studyName string, trials []view.Trial, metric string) error {
	asked, found := 0, false
	for part := range slices.Chunk(trials, curvesAtOnce) {
		err := r.call(cmd, func(ctx context.Context, c service) (err error) {
			for i := range part {
				t := &part[i]
				if t.Times.Ended.IsZero() || asked >= probes && !found {
					continue
				}
				if t.Measurements, err = listMeasurements(ctx, c, view.TrialName(studyName, t.Trial)); err != nil {
					return err
				}
				asked++
				found = found || slices.ContainsFunc(t.Measurements, func(c view.Curve) bool { return c.Metric == metric && len(c.Steps) > 1 })
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

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
