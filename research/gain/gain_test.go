package main

import (
	"strings"
	"testing"
)

// By hand: of three forecasts the second is of more than the gain, and the third of less, also at most.
func TestReport(t *testing.T) {
	var text strings.Builder
	report(&text, []forecast{
		{Task: "branin", After: 25, Expected: 0.049, Most: 0.2, Gained: 0.049},
		{Task: "branin", After: 25, Expected: 0.039, Most: 0.09, Gained: 0.009},
		{Task: "branin", After: 25, Expected: 0.004, Most: 0.008, Gained: 0.049},
	})
	want := "| of the development | 25 | 3 | 4.00 | 1.00 | 67% | 0 of 1 | 0 of 1 | 2 of 2 | 2 of 3 |"
	if !strings.Contains(text.String(), want) {
		t.Errorf("the report is\n%swant\n%s", text.String(), want)
	}
}

// A run has one forecast for each of the moments. Its figures are shares of the distance from the best to the median value.
func TestPlay(t *testing.T) {
	task, err := newTask("", "branin")
	if err != nil {
		t.Fatal(err)
	}
	list, err := play(t.Context(), task, "gp", 1)
	if err != nil || len(list) != len(moments) {
		t.Fatalf("%d forecasts, %v", len(list), err)
	}
	for i, f := range list {
		if f.After != moments[i] || f.Gained < 0 || f.Most < f.Expected || f.Expected < 0 {
			t.Errorf("the forecast is %+v", f)
		}
	}
	if _, err := play(t.Context(), task, "random", 1); err == nil || !strings.Contains(err.Error(), "hebo or gp") {
		t.Errorf("random is said to forecast: %v", err)
	}
}
