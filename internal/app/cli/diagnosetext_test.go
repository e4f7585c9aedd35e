package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
)

// The text has the findings of the diagnosis, as JSON has them, wrapped to the terminal and
// to 80 columns.
func TestDiagnosisTextHasTheFindings(t *testing.T) {
	found := &diagnosis.Diagnosis{Study: "digits", Completed: 21, Used: 21, Findings: []diagnosis.Finding{
		{Topic: diagnosis.TopicModel, Judged: true, Statement: "A statement with 100% of it, which is longer than one line of eighty columns " +
			"can hold beside its topic.", Evidence: "a figure; 21 completed trials"},
		{Topic: diagnosis.TopicParameters, Statement: "Not judged: this needs more.", Evidence: "21 completed trials"},
	}}
	for width, columns := range map[int]int{0: 80, 60: 60, 80: 80, 120: 80} {
		diagnosisFits(t, found, width, columns)
	}
}

// diagnosisFits checks the text for a width of the terminal.
func diagnosisFits(t *testing.T, found *diagnosis.Diagnosis, width, columns int) {
	t.Helper()
	var text strings.Builder
	if err := diagnosisText(&text, found, "error", width); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, f := range found.Findings {
		if want := strings.Join([]string{string(f.Topic), f.Statement, f.Evidence}, " "); !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDiagnosisTextSaysWhatEarlyStoppingWouldHaveSaved(t *testing.T) {
	step, kept := int64(6), 0.25
	found := &diagnosis.Diagnosis{EarlyStopping: []diagnosis.Replay{
		{Rule: "median", Trials: 40, Stopped: 30, Steps: 1000, Saved: 560, Best: 7, BestValue: 0.125, Kept: 7, KeptValue: &kept},
		{Rule: "asha", Trials: 40, Stopped: 34, Steps: 1000, Saved: 630, Best: 7, BestValue: 0.125, BestStoppedAt: &step, Kept: 9,
			KeptValue: &kept},
	}}
	var text strings.Builder
	if err := diagnosisText(&text, found, "error", 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"median                saves 56% of 1000 steps; stops 30 of 40 trials; the best trial 7 goes on\n",
		"asha                  saves 63% of 1000 steps; stops 34 of 40 trials; the best trial 7 (0.125) stops at step 6, and trial 9 (0.25) " +
			"is the best left\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

func TestDiagnosisTextHasObjectivesAndLimits(t *testing.T) {
	found := &diagnosis.Diagnosis{
		Objectives: []diagnosis.Tradeoff{
			{A: "error", B: "seconds", Front: new(-0.914), Space: new(0.3), BestA: diagnosis.End{Trial: 3, A: 0.01, B: 9.12345},
				BestB: diagnosis.End{Trial: 5, A: 0.5, B: 1}},
			{A: "error", B: "size", BestA: diagnosis.End{Trial: 3, A: 0.01, B: 7}, BestB: diagnosis.End{Trial: 3, A: 0.01, B: 7}},
		},
		Limits: []diagnosis.LimitEffect{{
			Limit: "size <= 7", Outside: 0.5, Alone: 0.25, Front: 1, Bound: 1, Hypervolume: new(2.0), WithoutHypervolume: new(4.0),
			Best: []diagnosis.BestWithin{{Metric: "error", Without: new(0.01)}, {Metric: "seconds", Within: new(2.0), Without: new(1.0)}},
		}},
	}
	var text strings.Builder
	if err := diagnosisText(&text, found, "error", 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"error and seconds     -0.91 along the front, +0.30 over the space; best error is trial 3 (0.01, 9.12), best seconds is trial 5 (0.5, " +
			"1)\n",
		"error and size        not known along the front, not known over the space; best error is trial 3 (0.01, 7), best size is trial 3 " +
			"(0.01, 7)\n",
		"size <= 7             rules out 50% of the space, 25% alone; active at 1 of the front's 1 point; hypervolume 2, without it 4; best " +
			"error none, without it 0.01; best seconds 2, without it 1\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

// The model of curves offers to finish a trial that it expects to beat the best one.
func TestDiagnosisOffersToFinish(t *testing.T) {
	margin := 0.75
	var text strings.Builder
	err := diagnosisText(&text, &diagnosis.Diagnosis{Study: "digits", Completed: 9, Judged: &diagnosis.Judged{
		Checked: 9, Inside: 8, Best: 3, Step: 6, Margin: &margin, Patience: 1.5,
		Unfinished: []diagnosis.Unfinished{{Trial: 7, Step: 12, Value: 0.25, Low: 0.125, High: 0.375, Reached: 0.5}},
	}}, "loss", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"calibration           8 of 9 completed trials ended in the band of 90% that was expected after a third of their steps\n",
		"the best trial        trial 3, at step 6, was expected to end worse than a new one by at most 0.75 standard deviations; " +
			"the rule stops above 1.5\n",
		"unfinished            trial 7 was stopped at step 12 and is expected to end at 0.25 (0.125 to 0.375), better than 0.5, the best " +
			"so far: fantasia trial continue digits 7\n",
		"none: fewer than 20 trials have completed, or they are too much alike\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}
