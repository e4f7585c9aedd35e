package picture

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// Values beyond what is drawn have labels that are numbers: the width of a range of them
// overflows.
func TestLabelsOfHugeValues(t *testing.T) {
	for _, ends := range [][2]float64{{-1.7e308, 1.7e308}, {-math.MaxFloat64, 0}, {1, math.MaxFloat64}, {-math.MaxFloat64, -1.7e308}} {
		points := []Point{{X: 1, Y: ends[0]}, {X: 2, Y: ends[1]}}
		for _, log := range []bool{false, true} {
			for name, text := range map[string]Text{
				"all": {Width: 60, Height: 8, Log: log}, "range": {Width: 60, Height: 8, Log: log, Low: ends[0], High: ends[1]},
			} {
				got := text.Draw(points)
				if got == "" || strings.Contains(got, "Inf") || strings.Contains(got, "NaN") {
					t.Errorf("%v, %s, log %t:\n%s", ends, name, log, got)
				}
			}
		}
	}
	for _, v := range []float64{math.MaxFloat64, -math.MaxFloat64, -1.7e308} {
		for _, got := range []string{number(v), short(v)} {
			if near, err := strconv.ParseFloat(got, 64); err != nil || math.Abs(near/v-1) > 1e-3 {
				t.Errorf("%g is written %s: %v", v, got, err)
			}
		}
	}
}
