package figure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// The curve of a stopped trial goes on as it was expected to, in a band, with the level from its first step to its last.
func TestReportedUntilStopped(t *testing.T) {
	f := ReportedUntilStopped("c", &view.Curve{Metric: "loss", Steps: []int64{1, 2}, Values: []float64{3, 2}}, 4, &record.Expected{
		Steps: []int64{4, 8}, Values: []float64{1.5, 1}, Low: []float64{1.25, 0.5}, High: []float64{1.75, 1.5}, Level: 0.25,
	}, "What it reported.")
	chart, ok := f.Pictures[0].(*picture.Chart)
	if !ok || len(chart.Series) != 3 {
		t.Fatalf("the picture is %+v", f.Pictures[0])
	}
	at := func(s picture.Series) (list [][2]float64) {
		for _, p := range s.Points {
			list = append(list, [2]float64{p.X, p.Y})
		}
		return list
	}
	expected, level := chart.Series[1], chart.Series[2]
	if diff := cmp.Diff([][2]float64{{2, 2}, {4, 1.5}, {8, 1}}, at(expected)); diff != "" {
		t.Errorf("expected (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]float64{{2, 1.25, 0.5}, {2, 1.75, 1.5}}, [][]float64{expected.Low, expected.High}); diff != "" {
		t.Errorf("the band (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][2]float64{{1, 0.25}, {8, 0.25}}, at(level)); diff != "" {
		t.Errorf("the level (-want +got):\n%s", diff)
	}
}
