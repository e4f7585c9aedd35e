package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
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

// history is the picture of the trials' history.
func history(trials []record.Trial, objective study.Objective) *picture.History {
	return figure.Progress(&study.Spec{Objective: objective}, trials)
}

func TestHistoryIsInTheOrderOfEnds(t *testing.T) {
	for direction, best := range map[study.Direction][]picture.Point{
		study.Minimize: {{X: 1, Y: 5}, {X: 2, Y: 2}, {X: 4, Y: 2}}, study.Maximize: {{X: 1, Y: 5}, {X: 4, Y: 5}},
	} {
		h := history(trials(), study.Objective{Metric: "loss", Direction: direction})
		want := []picture.Evaluation{
			{Trial: 2, X: 1, State: picture.Completed, Value: 5}, {Trial: 1, X: 2, State: picture.Completed, Value: 2},
			{Trial: 3, X: 3, State: picture.Completed, Value: 3},
			{Trial: 4, X: 4, State: picture.Failed, Value: math.NaN(), Reason: "exit: boom,: and more"},
		}
		if diff := cmp.Diff(want, h.Evaluations, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", direction, diff)
		}
		got := h.Best()
		for i := range got {
			got[i] = picture.Point{X: got[i].X, Y: got[i].Y}
		}
		if diff := cmp.Diff(best, got, cmpopts.IgnoreUnexported(picture.Point{})); diff != "" {
			t.Errorf("%s: the best values (-want +got):\n%s", direction, diff)
		}
	}
}

// For any values, the plot is well-formed XML without NaN or infinite numbers.
func TestPlotsAreWellFormed(t *testing.T) {
	for name, values := range map[string][]float64{
		"one": {3}, "equal": {1, 1, 1}, "decades": {1e-3, 1, 1e6}, "zero": {0, 1, 100}, "negative": {-5, -1, -3},
		"huge": {1e300, -1e300, 0},
	} {
		var all []record.Trial
		for i, v := range values {
			all = append(all, completed(i+1, int64(i+1), v))
		}
		for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
			h := history(all, study.Objective{Metric: "loss", Direction: direction})
			svg := bytes.NewBuffer(h.SVG(picture.Frame{}))
			if text := svg.String(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("%s: the plot holds a number that is none", name)
			}
			for d := xml.NewDecoder(svg); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if sketch := h.Text(60); (sketch == "") != (name == "one") {
				t.Errorf("%s: the sketch is %q", name, sketch)
			}
		}
	}
}

func TestEmptyHistory(t *testing.T) {
	h := history(nil, study.Objective{Direction: study.Minimize})
	if len(h.Best()) != 0 || h.Text(80) != "" {
		t.Errorf("of no trials: %+v", h)
	}
}

// Evaluations without a value have positions on the axis and marks; cancelled trials do
// not count as evaluations. A bad start is marked at the edge, not hidden.
func TestPlotsShowFailuresAndOutliers(t *testing.T) {
	all := trials() // evaluation 4 has failed
	all = append(all, record.Trial{Number: 5, State: study.TrialCancelled, Ended: 6},
		record.Trial{Number: 6, State: study.TrialInfeasible, Ended: 7})
	for i := range 20 {
		all = append(all, completed(7+i, int64(8+i), 2.5-float64(i)/10))
	}
	all = append(all, completed(40, 1, 1e6)) // the first that ended
	objective := study.Objective{Metric: "loss", Direction: study.Minimize}
	h := history(all, objective)
	values := slices.DeleteFunc(slices.Clone(h.Evaluations), func(e picture.Evaluation) bool { return e.State != picture.Completed })
	if n := len(h.Evaluations); n != 26 || len(values) != 24 || h.Evaluations[n-1].X != 26 {
		t.Errorf("%d evaluations, %d values", n, len(values))
	}
	sketch := h.Text(70)
	for _, want := range []string{"best loss, lower is better", "failed │", "×", "infeasible │", "○", "▲ 2 above the range shown, up to 1e6",
		"evaluations"} {
		if !strings.Contains(sketch, want) {
			t.Errorf("the sketch lacks %q:\n%s", want, sketch)
		}
	}
	svg := string(h.SVG(picture.Frame{}))
	for _, want := range []string{
		"loss, lower is better", "evaluation 5, trial 4: failed (exit: boom,: and more)", "evaluation 6, trial 6: infeasible", "failed (1)",
		"infeasible (1)",
		"evaluation 1, trial 40: loss 1e6", "above, up to 1e6", "best so far",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}

// The parts of evaluations in Jobs are stages of their own, and a diagnosis goes by the program's own time.
func TestStagesOfJobs(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	trial := figure.Of(&study.Spec{}, nil, &record.Trial{Number: 1, State: study.TrialCompleted, Ended: 9,
		Times: record.Times{Started: at(0), Ended: at(30)},
		Attempts: []record.Attempt{{Number: 1, State: study.AttemptSucceeded, Started: at(0), Ended: at(30),
			Stages: &messaging.Stages{Created: at(1), Scheduled: at(11), Started: at(18), Ended: at(25)}}}})
	f := figure.Study{Trials: []*figure.Trial{trial}}
	var got []string
	for _, s := range f.Stages() {
		got = append(got, fmt.Sprint(s.Name, " ", s.Half))
	}
	if diff := cmp.Diff([]string{"evaluation 30s", "in it: admitting the Job 1s", "in it: finding a node 10s",
		"in it: starting the program 7s", "in it: the program itself 7s", "in it: collecting the result 5s"}, got); diff != "" {
		t.Error(diff)
	}
	if v := trial.View(nil); v.Ran() != 7*time.Second {
		t.Errorf("the program itself ran for %v, want 7s", v.Ran())
	}
}

// An attempt that failed is drawn as failed, also if a later attempt found the trial to be
// infeasible: only the attempt that answered is infeasible. Records and the API's views of
// them give the same picture.
func TestAttemptsOfAnInfeasibleTrial(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	s := &study.Study{Spec: study.Spec{Objective: study.Objective{Metric: "loss"}, Parallelism: 2}}
	infeasible := record.Trial{Number: 1, State: study.TrialInfeasible, Ended: 9, Attempts: []record.Attempt{
		{Number: 1, State: study.AttemptFailed, Worker: "w", Claimed: at(0), Ended: at(1),
			Failure: &messaging.Failure{Reason: "exit", ExitCode: new(3)}},
		{Number: 2, State: study.AttemptLost, Worker: "w", Claimed: at(2), Ended: at(3), Failure: &messaging.Failure{Reason: "silent"}},
		{Number: 3, State: study.AttemptSucceeded, Worker: "w", Started: at(4), Ended: at(5)},
		{Number: 4, State: study.AttemptOpen},
	}}
	want := []picture.Attempt{
		{Trial: 1, Number: 1, Worker: "w", Start: 0, End: 1, State: picture.Failed, Reason: "exit code 3"},
		{Trial: 1, Number: 2, Worker: "w", Start: 2, End: 3, State: picture.Lost, Reason: "silent"},
		{Trial: 1, Number: 3, Worker: "w", Start: 4, End: 5, State: picture.Infeasible},
	}
	seen := view.OfTrial(infeasible)
	for name, trial := range map[string]*figure.Trial{"record": figure.Of(&study.Spec{}, nil, &infeasible), "view": figure.From(nil, &seen)} {
		f := figure.Study{Spec: &s.Spec, All: []*figure.Trial{trial}, Trials: []*figure.Trial{trial}, Started: figure.At(start)}
		got := f.Workers().Pictures[0].(*picture.Gantt).Attempts
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if bars := f.Failures().Pictures[0].(*picture.Bars).Bars; len(bars) != 2 || bars[0].Name != "exit code 3" {
			t.Errorf("%s: the failures are %+v", name, bars)
		}
		if text := f.Idle(); text != "Up to 1 evaluations ran at once, of the 2 that the study allows. From the first start to the last end, "+
			"70.0% of this capacity was idle." {
			t.Errorf("%s: %s", name, text)
		}
	}
}
