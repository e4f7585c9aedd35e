package dashboard_test

import (
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// The page of a study says how many steps early stopping saved, and that of diagnostics offers to finish the trial that was stopped
// too early: it is near the best place, 0.3, where the loss after step s is (x − 0.3)² + 0.5/s.
func TestEarlyStopping(t *testing.T) {
	s := serve(t, after(7200), "")
	if _, err := s.Create(t.Context(), []byte(`apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: bowl}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  budget: {maxTrials: 16}
  earlyStopping: {name: model}
  trial: {command: [train]}
`)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 16; n++ {
		x, steps := 0.5+float64(n-1)/28, 20
		switch n {
		case 15:
			x, steps = 0.31, 12
		case 16:
			x, steps = 0.95, 8
		}
		c := curve.Series{Metric: "loss"}
		for step := 1; step <= steps; step++ {
			c.Points = append(c.Points, curve.Point{Step: int64(step), Value: (x-0.3)*(x-0.3) + 0.5/float64(step)})
		}
		begin, end := after(float64(60*n)), after(float64(60*(n+steps)))
		tr := record.Trial{Number: n, State: study.TrialCompleted, Point: study.Point{"x": x}, Created: int64(2*n - 1), Ended: int64(100 + 2*n),
			Values: study.Values{c.Points[steps-1].Value}, Times: record.Times{Created: begin, Started: begin, Ended: end, Folded: end}}
		if steps < 20 {
			tr.State, tr.Stopped = study.TrialPruned, &record.Stopped{Attempt: 1, Step: int64(steps), Values: tr.Values, At: end}
		}
		s.Put("bowl", tr)
		s.PutMeasurements("bowl", curve.Reported{Trial: n, Attempt: 1, Series: []curve.Series{c}})
	}
	best, err := s.Trial(t.Context(), "bowl", 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Change("bowl", func(at *server.Study) {
		at.Status = record.Status{State: study.Completed, Started: epoch, Trials: 16, Position: 200, Best: 1,
			Counts: record.Counts{Completed: 14, Pruned: 2}}
		at.Best = &best
	})
	page := s.eventually(t, "/ui/studies/bowl", "panel-allocation")
	for _, want := range []string{"2 trials were stopped early and did not run 20 of 40 steps (50%)", "stopped early (2)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	page = s.eventually(t, "/ui/studies/bowl/diagnostics", "panel-judged")
	if !strings.Contains(page, "fantasia trial continue bowl 15") || strings.Contains(page, "continue bowl 16") {
		t.Error("the page does not offer to finish trial 15 alone")
	}
	picture := s.eventually(t, "/ui/studies/bowl/pictures/allocation", "<svg")
	if !strings.Contains(picture, `data-trial="16" data-x="16" data-y="8"`) {
		t.Error("the picture lacks the column of trial 16")
	}
}
