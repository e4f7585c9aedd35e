package display_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/app/display"
)

// Plots of curves are well-formed SVG that name what they show; decades are
// labelled where there are several.
func TestWriteCurves(t *testing.T) {
	steep := display.Curve{Name: "steep", X: []float64{1, 2}, Low: []float64{1e2, 1e-4}, Mid: []float64{1e3, 1e-3}, High: []float64{1e4, 1e-2}}
	flat := display.Curve{Name: "flat", Color: 1, Dash: 2, X: []float64{1, 2}, Low: []float64{1, 1}, Mid: []float64{2, 2}, High: []float64{3, 3}}
	for _, tt := range []struct {
		name   string
		log    bool
		curves []display.Curve
		want   []string
	}{
		{"several decades", true, []display.Curve{steep, flat}, []string{"steep", "flat", ">1e-4<", ">1e4<"}},
		{"one decade", true, []display.Curve{flat}, []string{">2<"}},
		{"values", false, []display.Curve{flat}, []string{"flat"}},
		{"nothing yet", true, []display.Curve{{Name: "empty"}}, []string{"empty"}},
		{"a constant", true, []display.Curve{{Name: "constant", X: []float64{1}, Low: []float64{1}, Mid: []float64{1}, High: []float64{1}}}, []string{"constant"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			err := display.WriteCurves(&b, display.Axes{Title: "a title", X: "evaluations", Y: "regret", Log: tt.log}, tt.curves)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(tt.want, "a title", "evaluations", "regret") {
				if !strings.Contains(b.String(), want) {
					t.Errorf("the plot lacks %q", want)
				}
			}
			for d := xml.NewDecoder(&b); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
