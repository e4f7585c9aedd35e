package diagnosis_test

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
)

// By hand: ten of thirty trials have ended in ten minutes, so twenty minutes are left; half a minute later, half a minute less.
func TestCourseLeft(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	course := diagnosis.Course{Ended: 10, MaxTrials: 30, Elapsed: 10 * time.Minute, At: at}
	later := at.Add(30 * time.Second)
	for _, c := range []struct {
		name   string
		change func(c *diagnosis.Course)
		want   time.Duration
		no     bool
	}{
		{"the pace", func(*diagnosis.Course) {}, 19*time.Minute + 30*time.Second, false},
		{"no moment", func(c *diagnosis.Course) { c.At = time.Time{} }, 20 * time.Minute, false},
		{"a forecast", func(c *diagnosis.Course) { c.Ends = at.Add(5 * time.Minute) }, 270 * time.Second, false},
		{"a forecast that has passed", func(c *diagnosis.Course) { c.Ends = at }, 0, false},
		{"both budgets", func(c *diagnosis.Course) { c.MaxDuration = 12 * time.Minute }, 90 * time.Second, false},
		{"a budget of time", func(c *diagnosis.Course) { c.MaxTrials, c.MaxDuration = 0, time.Hour }, 49*time.Minute + 30*time.Second, false},
		{"too few", func(c *diagnosis.Course) { c.Ended = 2 }, 0, true},
	} {
		changed := course
		c.change(&changed)
		if left, ok := changed.Left(later); left != c.want || ok == c.no {
			t.Errorf("%s: %v (%t) are left, want %v", c.name, left, ok, c.want)
		}
	}
	for ended, want := range map[int]bool{2: false, 3: true, 3000: true, 3001: false} {
		if c := (diagnosis.Course{Ended: ended, MaxTrials: 9000}); c.Foreseeable() != want {
			t.Errorf("after %d trials the end can be foreseen: %t, want %t", ended, !want, want)
		}
	}
	if c := (diagnosis.Course{Ended: 100}); c.Foreseeable() {
		t.Error("the end of a study without a budget of trials can be foreseen")
	}
}
