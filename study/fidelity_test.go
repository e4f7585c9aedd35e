package study_test

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// TestLevels compares the levels with those that the definition gives by hand.
func TestLevels(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		reduction int
		want      []int64
	}{
		{1, 81, 3, []int64{1, 3, 9, 27, 81}},
		{1, 90, 3, []int64{1, 3, 9, 27, 90}}, // 81 gives way to max
		{2, 31, 4, []int64{2, 31}},
		{2, 32, 4, []int64{2, 8, 32}},
		{1, 1<<53 - 1, 1000, []int64{1, 1e3, 1e6, 1e9, 1e12, 1<<53 - 1}},
	} {
		p := study.Parameter{Name: "epochs", Type: study.Fidelity, Min: &test.low, Max: &test.high, Reduction: &test.reduction}
		if got := p.Levels(); !slices.Equal(got, test.want) {
			t.Errorf("levels from %g to %g by %d: %v; want %v", test.low, test.high, test.reduction, got, test.want)
		}
		for k, level := range test.want {
			if got := p.FromUnit(p.ToUnit(level)); got != level {
				t.Errorf("level %d comes back as %v", level, got)
			}
			if i, ok := p.Index(level); !ok || i != k {
				t.Errorf("level %d is number %d, %t; want %d", level, i, ok, k)
			}
		}
		if _, ok := p.Index(test.want[0] + 1); ok {
			t.Errorf("%d is a level", test.want[0]+1)
		}
	}
}
