package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

// recordedTrial ran from a minute on, for as many minutes as it has values.
func recordedTrial(number, minute int, values ...float64) view.Trial {
	begin := time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
	c := view.Curve{Metric: "loss", Values: values}
	for i := range values {
		c.Steps = append(c.Steps, int64(i+1))
	}
	last := values[len(values)-1]
	return view.Trial{
		Trial: number, State: study.TrialCompleted, Value: &last, Measurements: []view.Curve{{Metric: "other"}, c},
		Times: view.Times{Started: begin, Ended: begin.Add(time.Duration(len(values)) * time.Minute)},
	}
}

func flat(value float64) []float64 {
	values := make([]float64, 10)
	for i := range values {
		values[i] = value
	}
	return values
}

func minimising() *study.Study {
	return &study.Study{Metadata: study.Metadata{Name: "s"},
		Spec: study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}}}
}

// One trial runs after the other. Trials 1 to 8 have losses 1 to 8 throughout. Trial 9
// is bad until its last step, where it is the best of all.
func TestReplays(t *testing.T) {
	var trials []view.Trial
	for i := 1; i <= 8; i++ {
		trials = append(trials, recordedTrial(i, 10*i, flat(float64(i))...))
	}
	late := flat(9)
	late[9] = 0.5
	trials = append(trials, recordedTrial(9, 90, late...))
	replays, err := Replays(minimising(), view.List(trials))
	if err != nil {
		t.Fatal(err)
	}
	median := replays[1]
	// The median rule waits for three completed trials and for step 2, 20% of 10. Each
	// later trial is worse than the median of the completed ones and not among the best
	// three. Six trials (4 to 9) lose eight of ten steps.
	if median.Rule != "median" || median.Trials != 9 || median.Stopped != 6 || median.Steps != 90 || median.Saved != 48 {
		t.Errorf("median: %+v, want 6 of 9 trials stopped and 48 of 90 steps saved", median)
	}
	if median.Best != 9 || median.BestStoppedAt == nil || *median.BestStoppedAt != 2 || median.Kept != 1 || *median.KeptValue != 1 {
		t.Errorf("median: %+v, want the best trial 9 stopped at step 2, and trial 1 kept", median)
	}
	patient := replays[3]
	if patient.Rule != "patient" || patient.Stopped != 0 || patient.BestStoppedAt != nil || patient.Kept != 9 {
		t.Errorf("patient: %+v, want no trial stopped: none has become worse for 11 steps", patient)
	}
}

// Trials that overlap are compared as far as each was at the time.
func TestReplaysTrialsSideBySide(t *testing.T) {
	var trials []view.Trial
	for i := 1; i <= 8; i++ {
		trials = append(trials, recordedTrial(i, 0, flat(float64(i))...))
	}
	replays, err := Replays(minimising(), view.List(trials))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range replays {
		if r.Stopped != 0 {
			t.Errorf("%s stops %d of trials that all ran at once, before any had completed", r.Rule, r.Stopped)
		}
	}
}

func TestReplaysTheStudysOwnRule(t *testing.T) {
	s := minimising()
	s.Spec.EarlyStopping = &study.EarlyStopping{Name: "threshold", Settings: map[string]any{"upper": 4.5}}
	var trials []view.Trial
	for i := 1; i <= 8; i++ {
		trials = append(trials, recordedTrial(i, 0, flat(float64(i))...))
	}
	replays, err := Replays(s, view.List(trials))
	if err != nil {
		t.Fatal(err)
	}
	if r := replays[0]; r.Rule != "threshold" || r.Stopped != 4 || r.Saved != 36 || r.Best != 1 || r.BestStoppedAt != nil {
		t.Errorf("%+v, want the four trials above 4.5 stopped after one step", r)
	}
	s.Spec.EarlyStopping = &study.EarlyStopping{Name: "model"} // which needs to know the parameters
	if others, err := Replays(s, view.List(trials)); err != nil || len(others) != 4 || others[0].Rule != "asha" {
		t.Errorf("with a model of its own: %+v, %v", others, err)
	}
	s.Spec.EarlyStopping.Name = "threshold"
	s.Spec.EarlyStopping.Settings = map[string]any{"upper": "low"}
	if _, err := Replays(s, view.List(trials)); err == nil || !strings.Contains(err.Error(), `"upper"`) {
		t.Errorf("settings that are wrong: %v", err)
	}
	if replays, err := Replays(minimising(), view.List(trials[:7])); err != nil || replays != nil {
		t.Errorf("seven curves: %v, %v; want none", replays, err)
	}
}
