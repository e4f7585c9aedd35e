package acquisition_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// botorch holds values and derivatives that testdata/with_botorch.py computed with BoTorch.
type botorch struct {
	Limited []struct {
		posterior
		Best   float64   `json:"best"`
		Bounds []float64 `json:"bounds"`
	} `json:"limited"`
	Hypervolume []struct {
		posterior
		Front     [][]float64 `json:"front"`
		Reference []float64   `json:"reference"`
		Draws     *float64    `json:"draws"`
	} `json:"hypervolume"`
}

type posterior struct {
	Mean  []float64 `json:"mean"`
	SD    []float64 `json:"sd"`
	Log   float64   `json:"log"`
	DMean []float64 `json:"d_mean"`
	DSD   []float64 `json:"d_sd"`
}

// check compares a value and its derivatives with those of BoTorch.
func (p posterior) check(t *testing.T, log float64, dMean, dSD []float64) {
	t.Helper()
	checkRelative(t, "log", p.Mean[0], log, p.Log, 1e-9)
	for i := range p.Mean {
		checkSlope(t, fmt.Sprintf("dMean[%d]", i), dMean[i], p.DMean[i])
		checkSlope(t, fmt.Sprintf("dSD[%d]", i), dSD[i], p.DSD[i])
	}
}

// checkSlope compares a derivative, of which BoTorch rounds terms near 1 where it is almost 0.
func checkSlope(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-7*math.Abs(want)+1e-12) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func readBoTorch(t *testing.T) botorch {
	t.Helper()
	data, err := os.ReadFile("testdata/botorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var b botorch
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Limited) < 27 || len(b.Hypervolume) < 12 {
		t.Fatalf("%d and %d cases", len(b.Limited), len(b.Hypervolume))
	}
	return b
}

// The improvement within limits is the sum of LogEI and of the logarithm of the probability of
// each limit, as LogConstrainedExpectedImprovement.
func TestLimitedAgainstBoTorch(t *testing.T) {
	for _, c := range readBoTorch(t).Limited {
		dMean, dSD := make([]float64, len(c.Mean)), make([]float64, len(c.Mean))
		var log float64
		log, dMean[0], dSD[0] = acquisition.LogEIGradient(c.Mean[0], c.SD[0], c.Best)
		for k, bound := range c.Bounds {
			mean, sd := c.Mean[1+k], c.SD[1+k]
			log += acquisition.LogPI(mean, sd, bound)
			_, slope := acquisition.LogCDFGradient((bound - mean) / sd)
			dMean[1+k], dSD[1+k] = -slope/sd, -slope*(bound-mean)/(sd*sd)
		}
		c.check(t, log, dMean, dSD)
	}
}

// LogEHVI is the logarithm of ExpectedHypervolumeImprovement, and, but for the error of 512
// draws, qLogNoisyExpectedHypervolumeImprovement.
func TestHypervolumeAgainstBoTorch(t *testing.T) {
	drawn := 0
	for _, c := range readBoTorch(t).Hypervolume {
		dMean, dSD := make([]float64, len(c.Mean)), make([]float64, len(c.Mean))
		log := acquisition.NewHypervolume(c.Front, c.Reference).LogEHVIGradient(c.Mean, c.SD, dMean, dSD)
		c.check(t, log, dMean, dSD)
		if c.Draws == nil {
			continue
		}
		drawn++
		if math.Abs(log-*c.Draws) > 0.05 {
			t.Errorf("at %v LogEHVI is %v, by draws %v", c.Mean, log, *c.Draws)
		}
	}
	if drawn < 8 {
		t.Errorf("only %d were drawn", drawn)
	}
}
