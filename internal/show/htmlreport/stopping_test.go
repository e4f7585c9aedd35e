package htmlreport

import (
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// The report of a study that stops trials early says how many steps that saved, draws which trial ran how many, and offers to finish
// the one that was stopped too early: it is near the best place, 0.3, where the loss after step s is (x − 0.3)² + 0.5/s.
func TestEarlyStopping(t *testing.T) {
	parsed, err := file.Parse([]byte(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: bowl}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  budget: {maxTrials: 16}
  earlyStopping: {name: model}
  trial: {command: [train]}
`))
	if err != nil {
		t.Fatal(err)
	}
	src := &Source{Study: parsed, Now: epoch.Add(time.Hour), View: view.Study{Study: "bowl", State: study.Completed}}
	var trials view.List
	add := func(x float64, steps int) {
		n := len(trials)
		begin := epoch.Add(time.Duration(n) * time.Minute)
		c := view.Curve{Metric: "loss"}
		for s := 1; s <= steps; s++ {
			c.Steps, c.Values = append(c.Steps, int64(s)), append(c.Values, (x-0.3)*(x-0.3)+0.5/float64(s))
		}
		end := begin.Add(time.Duration(steps) * time.Minute)
		trial := view.Trial{Trial: n + 1, State: study.TrialCompleted, Parameters: view.Parameters{"x": x}, Measurements: []view.Curve{c},
			Times: view.Times{Started: begin, Ended: end, Folded: end}, Value: &c.Values[steps-1]}
		if steps < 20 {
			trial.State, trial.Stopped = study.TrialPruned, &view.Stopped{Step: int64(steps), Value: trial.Value}
		}
		trials = append(trials, trial)
	}
	for i := range 14 {
		add(0.5+float64(i)/28, 20)
	}
	add(0.31, 12)
	add(0.95, 8)
	src.Trials = trials
	page := pageOf(t, t.Context(), src)
	shown := figureOf(t, page, "allocation")
	for _, want := range []string{"2 trials were stopped early and did not run 20 of 40 steps (50%)", `data-trial="16" data-x="16" data-y="8"`,
		"completed (14)", "stopped early (2)"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if shown := figureOf(t, page, "judged"); !strings.Contains(shown, "of 14 completed trials ended in the band of 90%") ||
		!strings.Contains(shown, "fantasia trial continue bowl 15") || strings.Contains(shown, "bowl 16") {
		t.Errorf("what the model says: %s", shown)
	}
	parsed.Spec.EarlyStopping = nil
	src.Trials = trials[:14]
	if page := pageOf(t, t.Context(), src); strings.Contains(page, `id="judged"`) || strings.Contains(page, `id="allocation"`) {
		t.Error("a study that stops no trial speaks of early stopping")
	}
}
