package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

// judgedTrial ends at (x − 0.3)² + 0.5/20 after 20 steps, if it is not stopped before. Trials begin a minute after
// one another, and take 20.
func judgedTrial(number int, x float64, steps int) view.Trial {
	begin := time.Date(2026, 1, 1, 0, number, 0, 0, time.UTC)
	c := view.Curve{Metric: "loss"}
	for s := 1; s <= steps; s++ {
		c.Steps, c.Values = append(c.Steps, int64(s)), append(c.Values, (x-0.3)*(x-0.3)+0.5/float64(s))
	}
	end := begin.Add(time.Duration(steps) * time.Minute)
	t := view.Trial{
		Trial: number, State: study.TrialCompleted, Parameters: view.Parameters{"x": x}, Measurements: []view.Curve{c},
		Times: view.Times{Started: begin, Ended: end, Folded: end},
	}
	if t.Value = &c.Values[steps-1]; steps < 20 { // its value is what it had reached
		t.State, t.Stopped = study.TrialPruned, &view.Stopped{Step: int64(steps), Value: t.Value}
	}
	return t
}

// A trial near the best place that was stopped too early is offered, unless another one continues it.
func TestJudge(t *testing.T) {
	s := minimising()
	s.Spec.Parameters = []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.), Max: new(1.), Scale: study.Linear}}
	var trials []view.Trial
	for i := range 14 {
		trials = append(trials, judgedTrial(i+1, 0.5+float64(i)/28, 20))
	}
	trials = append(trials, judgedTrial(15, 0.31, 12), judgedTrial(16, 0.95, 12))
	j, err := Judge(t.Context(), s, view.List(trials))
	if err != nil || j == nil {
		t.Fatalf("%+v, %v", j, err)
	}
	// The best one has x = 0.5, and ends at 0.065.
	if j.Best != 1 || j.Checked != 14 || j.Inside < 1 || j.Inside > 14 || j.Margin == nil {
		t.Errorf("judged: %+v", j)
	}
	if j.Order == nil || *j.Order != 1 {
		t.Errorf("reports and results have the order %v, want 1", j.Order)
	}
	if len(j.Unfinished) != 1 || j.Unfinished[0].Trial != 15 || j.Unfinished[0].Step != 12 || j.Unfinished[0].Value > 0.05 ||
		j.Unfinished[0].Reached != 0.04+0.025 {
		t.Errorf("unfinished: %+v", j.Unfinished)
	}
	again := judgedTrial(17, 0.9, 12)
	again.State, again.Predecessor, again.Times.Ended = study.TrialRunning, 15, time.Time{}
	if j, err := Judge(t.Context(), s, view.List(append(trials, again))); err != nil || len(j.Unfinished) != 0 {
		t.Errorf("a trial that is continued: %+v, %v", j.Unfinished, err)
	}
	if j, err := Judge(t.Context(), s, view.List(trials[12:])); err != nil || j != nil {
		t.Errorf("two completed trials: %+v, %v", j, err)
	}
}

// Where reports improve and results get worse, the statements say so, and what the rule does then.
func TestJudgeSaysThatReportsMeanTheOpposite(t *testing.T) {
	s := minimising()
	s.Spec.Parameters = []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.), Max: new(1.), Scale: study.Linear}}
	var trials []view.Trial
	for i := range 5 {
		trial := judgedTrial(i+1, 0.5+float64(i)/10, 20)
		trial.Value = new(-*trial.Value)
		trials = append(trials, trial)
	}
	j, err := Judge(t.Context(), s, view.List(trials))
	if err != nil || j == nil || j.Order == nil || *j.Order != -1 {
		t.Fatalf("%+v, %v", j, err)
	}
	want := "reports improve where results get worse, so check which metric is reported, and its sign (rank correlation -1.00)"
	if !slices.ContainsFunc(j.Statements("digits"), func(s Statement) bool { return s.Name == "reports" && strings.HasPrefix(s.Text, want) }) {
		t.Errorf("the statements are %+v", j.Statements("digits"))
	}
	if j, err = Judge(t.Context(), s, view.List(trials[1:])); err != nil || j == nil || j.Order != nil {
		t.Errorf("of four trials: %+v, %v", j, err)
	}
}
