package display_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

func completed(number int, ended int64, value float64) record.Trial {
	return record.Trial{
		Number: number, State: study.TrialCompleted, Ended: ended, Values: []float64{value},
		Metrics: map[string]float64{"loss": value}, Point: study.Point{"x": value, "n": int64(number)},
		Attempts: []record.Attempt{{Number: 1, Worker: "w"}},
	}
}

// Trials by number, although they ended in the order 2, 1, 3.
func trials() []record.Trial {
	failed := record.Trial{Number: 4, State: study.TrialFailed, Ended: 5, Attempts: []record.Attempt{{
		Number: 1, Logs: "/logs/4", Failure: &messaging.Failure{Reason: "exit", Message: "boom,\nand more"},
	}}}
	return []record.Trial{completed(1, 3, 2), completed(2, 2, 5), completed(3, 4, 3), failed}
}

// The file of an interrupted run says so, and that nothing is running.
func TestInterruptedRunIsNotRunning(t *testing.T) {
	r := &display.Result{Interrupted: true,
		Status: record.Status{State: study.Running, Counts: record.Counts{Completed: 4, Pending: 1, Queued: 2, Running: 3}}}
	v := display.View(r)
	if v.State != display.Interrupted || v.Trials != (record.Counts{Completed: 4, Pending: 6}) {
		t.Errorf("the state is %s, the trials %+v", v.State, v.Trials)
	}
	r.Interrupted = false
	if v := display.View(r); v.State != study.Running || v.Trials.Running != 3 {
		t.Errorf("a study that runs: %s, %+v", v.State, v.Trials)
	}
}

func TestSummarySaysWhatToDoNext(t *testing.T) {
	best := completed(1, 3, 2)
	r := &display.Result{Trials: trials(), Best: &best}
	r.Study.Definition.Metadata.Name = "demo"
	r.Study.Definition.Spec = study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize},
		Parameters: []study.Parameter{{Name: "x"}}}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r.Status = record.Status{State: study.Completed, Started: start, Ended: start.Add(90 * time.Second),
		Counts: record.Counts{Completed: 3, Failed: 1}}
	var out strings.Builder
	if err := display.Summarize(&out, r, display.Place{File: "study.yaml", State: display.DefaultState("demo"), Width: 80}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"study demo completed after 1m30s: 3 completed, 1 failed", "loss = 2 in trial 1", "boom,", "/logs/4",
		"fantasia run study.yaml --new", ".fantasia/demo/report.html (also result.json, trials.csv)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	r.Interrupted = true
	if err := display.Summarize(&out, r, display.Place{File: "my study.yaml", State: "elsewhere", Width: 80}); err != nil {
		t.Fatal(err)
	}
	if want := "fantasia run 'my study.yaml' --state elsewhere\n"; !strings.Contains(out.String(), want) ||
		strings.Contains(out.String(), "--new") {
		t.Errorf("an interrupted run's summary should say %q:\n%s", want, out.String())
	}
}

// On a terminal, lines break between words, and continuation lines align with the text.
func TestSummaryFitsTheTerminal(t *testing.T) {
	best := completed(1, 3, 2)
	best.Point = study.Point{"learning_rate_of_the_second_group_of_layers": 0.12345678901234566}
	r := &display.Result{Trials: trials(), Best: &best}
	r.Study.Definition.Spec = study.Spec{
		Objective:  study.Objective{Metric: "loss", Direction: study.Minimize},
		Parameters: []study.Parameter{{Name: "x"}, {Name: "learning_rate_of_the_second_group_of_layers"}},
	}
	r.Status = record.Status{State: study.Completed}
	var out strings.Builder
	if err := display.Summarize(&out, r, display.Place{File: "study.yaml", State: "elsewhere", Width: 60, Wrap: true}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if len([]rune(line)) > 60 {
			t.Errorf("a line has %d columns: %q", len([]rune(line)), line)
		}
	}
	for _, want := range []string{"_layers\n             0.12345678901234566\n",
		"in study.yaml and run it\n             again to continue, or start over:\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
}

// The hint for continuing a study depends on what ended it.
func TestSummarySaysHowToGoOn(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, change := range map[string]func(*study.Spec, *record.Status){
		"raise budget.maxTrials in study.yaml": func(s *study.Spec, _ *record.Status) { s.Budget.MaxTrials = 4 },
		"raise budget.maxDuration in study.yaml": func(s *study.Spec, _ *record.Status) {
			s.Budget.MaxDuration = study.Duration(time.Minute)
		},
		"raise budget.maxDuration in study.yaml and": func(s *study.Spec, status *record.Status) {
			s.Budget = study.Budget{MaxDuration: study.Duration(2 * time.Minute)}
			status.Reason = "no other trial is expected to end in the 30s that are left of 2m0s (maxDuration)"
		},
		"set a stricter objective.goal, or none, in study.yaml": func(s *study.Spec, _ *record.Status) { s.Objective.Goal = new(2.5) },
		"nothing is left to evaluate: widen the parameters":     func(*study.Spec, *record.Status) {},
		"lower budget.stopWhen.gain, or leave stopWhen out, in": func(s *study.Spec, status *record.Status) {
			s.Budget.StopWhen.Gain = 0.1
			status.Gain.Completed, status.Gain.Most = 24, 0.1
		},
		"nothing is left to evaluate: widen the parameters under a": func(s *study.Spec, status *record.Status) {
			s.Objective.Goal, s.Budget.MaxDuration, status.Ran = new(1.5), study.Duration(time.Minute), 30*time.Second
		},
	} {
		best := completed(1, 3, 2)
		r := &display.Result{Trials: trials(), Best: &best}
		spec := &r.Study.Definition.Spec
		*spec = study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}, Budget: study.Budget{MaxTrials: 9}}
		r.Status = record.Status{State: study.Completed, Started: start, Ended: start.Add(90 * time.Second), Ran: 90 * time.Second,
			Counts: record.Counts{Completed: 3, Failed: 1}}
		change(spec, &r.Status)
		var out strings.Builder
		if err := display.Summarize(&out, r, display.Place{File: "study.yaml", State: "elsewhere", Width: 80}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "next         "+want) || !strings.Contains(out.String(), ", or start over:\n") {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
}

// Progress in lines shows the best value and the recommended one.
func TestProgressInLines(t *testing.T) {
	now := coordinator.Progress{
		Study: record.Study{
			Definition: study.Study{Spec: study.Spec{Objective: study.Objective{Metric: "loss"}, Budget: study.Budget{MaxTrials: 8}}}},
		Status: record.Status{Counts: record.Counts{Completed: 3, Failed: 1, Running: 2}},
	}
	best := completed(3, 4, 0.25)
	for _, step := range []struct {
		best        *record.Trial
		recommended record.Recommendation
		want        string
	}{
		{nil, record.Recommendation{}, "4/8 done, 2 running, 1 failed\n"},
		{&best, record.Recommendation{}, "4/8 done, 2 running, 1 failed, best loss 0.25 (trial 3)\n"},
		{&best, record.Recommendation{Trial: 2, Mean: 0.28, SD: 0.03},
			"4/8 done, 2 running, 1 failed, best loss 0.25 (trial 3), recommended trial 2 (0.28 ± 0.03)\n"},
	} {
		var b bytes.Buffer
		now.Best, now.Status.Recommended = step.best, step.recommended
		p := display.NewProgress(t.Context(), &b, false)
		p.Say("first")
		p.Show(display.NewNow(&now, time.Now()))
		p.Close()
		if step.want = "first\n" + step.want; b.String() != step.want {
			t.Errorf("progress is %q, want %q", b.String(), step.want)
		}
	}
}

// What was spent of the budget is shown, and the time left follows from it: after 10 s a fifth is spent.
func TestProgressOfCost(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := coordinator.Progress{
		Study: record.Study{Definition: study.Study{Spec: study.Spec{
			Objective: study.Objective{Metric: "loss"}, Cost: &study.Cost{Metric: "dollars"}, Budget: study.Budget{MaxCost: 25},
		}}},
		Status: record.Status{State: study.Running, Started: start, Counts: record.Counts{Completed: 3}, Spent: 5},
	}
	for spent, want := range map[float64]string{
		5: "3 done, 0 running, 5 of 25 dollars, about 40s left\n", 0: "3 done, 0 running, 0 of 25 dollars\n",
		30: "3 done, 0 running, 30 of 25 dollars, about 0s left\n",
	} {
		now.Status.Spent = spent
		var b bytes.Buffer
		p := display.NewProgress(t.Context(), &b, false)
		p.Show(display.NewNow(&now, start.Add(10*time.Second)))
		p.Close()
		if b.String() != want {
			t.Errorf("progress is %q, want %q", b.String(), want)
		}
	}
}
