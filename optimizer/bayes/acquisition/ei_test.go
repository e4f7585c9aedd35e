package acquisition_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// reference holds values that testdata/reference.py computed with mpmath.
type reference struct {
	Normal []struct {
		Z        float64 `json:"z"`
		LogH     float64 `json:"log_h"`
		LogCDF   float64 `json:"log_cdf"`
		PDFOverH float64 `json:"pdf_over_h"`
		CDFOverH float64 `json:"cdf_over_h"`
	} `json:"normal"`
	Erfcx [][2]float64 `json:"erfcx"`
}

func readReference(t *testing.T) reference {
	t.Helper()
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func checkRelative(t *testing.T, what string, at, got, want, tolerance float64) {
	t.Helper()
	if got == want {
		return
	}
	if diff := math.Abs(got-want) / math.Abs(want); !(diff <= tolerance) {
		t.Errorf("%s at %g = %v, want %v (relative difference %.2g)", what, at, got, want, diff)
	}
}

func TestErfcxAgainstMpmath(t *testing.T) {
	for _, pair := range readReference(t).Erfcx {
		checkRelative(t, "Erfcx", pair[0], acquisition.Erfcx(pair[0]), pair[1], 1e-14)
	}
}

func TestAcquisitionsAgainstMpmath(t *testing.T) {
	for _, row := range readReference(t).Normal {
		value, dMean, dSD := acquisition.LogEIGradient(-row.Z, 1, 0)
		checkRelative(t, "LogEI", row.Z, acquisition.LogEI(-row.Z, 1, 0), row.LogH, 1e-13)
		checkRelative(t, "LogEIGradient's value", row.Z, value, row.LogH, 1e-13)
		checkRelative(t, "∂LogEI/∂mean", row.Z, dMean, -row.CDFOverH, 1e-13)
		checkRelative(t, "∂LogEI/∂sd", row.Z, dSD, row.PDFOverH, 1e-12)
		checkRelative(t, "LogPI", row.Z, acquisition.LogPI(-row.Z, 1, 0), row.LogCDF, 1e-12)
		value, slope := acquisition.LogCDFGradient(row.Z)
		checkRelative(t, "LogCDFGradient's value", row.Z, value, row.LogCDF, 1e-12)
		checkRelative(t, "LogCDFGradient's slope", row.Z, slope, row.PDFOverH/row.CDFOverH, 1e-12) // φ/Φ
	}
}

func TestLogEIScalesWithItsUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.Float64Range(-50, 10).Draw(t, "z")
		sd := math.Exp(rapid.Float64Range(-10, 10).Draw(t, "log sd"))
		best := rapid.Float64Range(-3, 3).Draw(t, "best")
		got := acquisition.LogEI(best-z*sd, sd, best)
		want := math.Log(sd) + acquisition.LogEI(-z, 1, 0)
		// best − (best − z·sd) rounds in units of best.
		slack := 1e-12*math.Abs(want) + 1e-15*(math.Abs(best)+math.Abs(z*sd))/sd*(math.Abs(z)+1)
		if math.Abs(got-want) > slack {
			t.Errorf("LogEI = %v, want %v", got, want)
		}
	})
}

func TestLogEIGradientAgainstFiniteDifferences(t *testing.T) {
	const h = 1e-6
	for _, z := range []float64{-200, -30, -5, -3.01, -2.99, -1.01, -0.99, 0, 1, 5, 30} {
		for _, sd := range []float64{0.1, 1, 7} {
			const best = 0.5
			mean := best - z*sd
			_, dMean, dSD := acquisition.LogEIGradient(mean, sd, best)
			numericMean := (acquisition.LogEI(mean+h*sd, sd, best) - acquisition.LogEI(mean-h*sd, sd, best)) / (2 * h * sd)
			numericSD := (acquisition.LogEI(mean, sd*(1+h), best) - acquisition.LogEI(mean, sd*(1-h), best)) / (2 * h * sd)
			for _, pair := range [][2]float64{{dMean, numericMean}, {dSD, numericSD}} {
				if diff := math.Abs(pair[0] - pair[1]); diff > 1e-6*math.Abs(pair[0])+1e-8/sd {
					t.Errorf("z=%g sd=%g: derivative %v, finite difference %v", z, sd, pair[0], pair[1])
				}
			}
		}
	}
}

func TestLimits(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"LogEI without spread, better", acquisition.LogEI(1, 0, 3), math.Log(2)},
		{"LogEI without spread, worse", acquisition.LogEI(3, 0, 1), -inf},
		{"LogEI without spread, equal", acquisition.LogEI(1, 0, 1), -inf},
		{"LogEI far out", acquisition.LogEI(1e200, 1, 0), -inf},
		{"LogPI far out", acquisition.LogPI(1e200, 1, 0), -inf},
		{"LogPI certain", acquisition.LogPI(-1e200, 1, 0), 0},
		{"LCB", acquisition.LCB(2, 0.5, 3), -0.5},
		{"Erfcx below its range", acquisition.Erfcx(-30), inf},
		{"Erfcx at infinity", acquisition.Erfcx(inf), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestLogMeanExp(t *testing.T) {
	inf := math.Inf(-1)
	for _, c := range []struct {
		v    []float64
		want float64
	}{
		{[]float64{-7}, -7},
		{[]float64{0, math.Log(3)}, math.Log(2)},
		{[]float64{-1e6, -1e6}, -1e6},
		{[]float64{1000, inf}, 1000 - math.Ln2},
		{[]float64{inf, inf}, inf},
	} {
		if got := acquisition.LogMeanExp(c.v); math.Abs(got-c.want) > 1e-14*math.Abs(c.want) && got != c.want {
			t.Errorf("LogMeanExp(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}

func BenchmarkLogEI(b *testing.B) {
	for _, z := range []float64{-10, -3, -2, 0, 2} {
		b.Run(fmt.Sprint("z=", z), func(b *testing.B) {
			for b.Loop() {
				acquisition.LogEIGradient(-z, 1, 0)
			}
		})
	}
}
