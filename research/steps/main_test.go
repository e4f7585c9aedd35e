package main

import "testing"

// The model must predict a slope in one parameter, and the chosen points must go down it.
func TestSteps(t *testing.T) {
	q := request{Batches: 1, Seed: 1, Queries: [][]int{{0, 1}, {9, 1}}}
	for range 2 {
		q.Parameters = append(q.Parameters, struct {
			Levels  int  `json:"levels"`
			Ordered bool `json:"ordered"`
		}{10, true})
	}
	for k := range 10 {
		q.Points, q.Values = append(q.Points, []int{k, 3 * k % 10}), append(q.Values, float64(k+1))
	}
	a, err := steps(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if !(a.Mean[0] < -1 && a.Mean[1] > 1) {
		t.Errorf("the slope is predicted as %v at its ends, want less than -1 and more than 1", a.Mean)
	}
	sum, observed := 0, map[[2]int]bool{}
	for _, p := range q.Points {
		observed[[2]int(p)] = true
	}
	for _, c := range a.Chosen[0] {
		sum += c[0]
		if observed[[2]int(c)] {
			t.Errorf("%v was observed, and is chosen", c)
		}
	}
	if len(a.Chosen[0]) != batch || sum > 3*batch {
		t.Errorf("chose %v; want %d points near the lower end of the first parameter", a.Chosen[0], batch)
	}
}
