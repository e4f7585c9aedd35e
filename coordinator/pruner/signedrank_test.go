package pruner

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// The expected values are scipy.stats.wilcoxon's: testdata/oracle.py.
func TestSignedRank(t *testing.T) {
	text, err := os.ReadFile("testdata/oracle.json")
	if err != nil {
		t.Fatal(err)
	}
	var oracle struct {
		Wilcoxon []struct {
			Differences []float64 `json:"differences"`
			P           float64   `json:"p"`
		} `json:"wilcoxon"`
	}
	if err := json.Unmarshal(text, &oracle); err != nil {
		t.Fatal(err)
	}
	if len(oracle.Wilcoxon) < 20 {
		t.Fatalf("%d tests, want 20", len(oracle.Wilcoxon))
	}
	for _, c := range oracle.Wilcoxon {
		if got := SignedRank(c.Differences); !(math.Abs(got-c.P) <= 1e-12) {
			t.Errorf("%v: %g, SciPy %g", c.Differences, got, c.P)
		}
	}
}

func FuzzSignedRank(f *testing.F) {
	f.Add([]byte{1, 2, 3, 255, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var differences, negated []float64
		for _, b := range steps[:min(len(steps), 60)] {
			differences = append(differences, float64(int8(b)))
			negated = append(negated, -float64(int8(b)))
		}
		if len(differences) == 0 {
			return
		}
		p, other := SignedRank(differences), SignedRank(negated)
		if !(p >= 0 && p <= 1+1e-12) {
			t.Fatalf("%v: %g is no probability", differences, p)
		}
		// What is as likely at least as large and at most as large covers everything.
		if p+other < 1-1e-12 {
			t.Fatalf("%v: %g and %g for the opposite are less than 1", differences, p, other)
		}
	})
}
