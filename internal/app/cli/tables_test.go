package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

// keptIn is a study of fantasia run that its directory tells from another of its name.
func keptIn(directory string, idle bool) found {
	return found{Study: &fantasiav1.Study{
		Name: "studies/learning-rates", State: fantasiav1.StudyState_STUDY_STATE_RUNNING, MaxTrials: 128, Pool: "default",
		Trials: &fantasiav1.TrialCounts{Completed: 40, Failed: 2, Running: 4}, Elapsed: durationpb.New(90 * time.Second),
		Best: &fantasiav1.BestTrial{Trial: 7, Value: 0.0281234}, Recommended: &fantasiav1.Recommendation{Trial: 7, Mean: 0.0290001},
	}, directory: directory, idle: idle}
}

var (
	studies = []found{keptIn(".fantasia/learning-rates", false), keptIn(".fantasia/learning-rates.1", true)}
	trials  = []view.Trial{
		{Trial: 1, State: study.TrialCompleted, Value: new(0.0281234), Attempts: 1, Worker: "worker-5f6d8-x2x", Source: "model",
			Parameters: view.Parameters{"lr": 0.001, "width": int64(64), "optimizer": "adamw"}},
		{Trial: 12, State: study.TrialFailed, Attempts: 2, Worker: "worker-5f6d8-x2x", Source: "design",
			Parameters: view.Parameters{"lr": 0.1, "width": int64(8), "optimizer": "sgd"}},
	}
	workers = []view.Worker{{Worker: "worker-5f6d8-x2x", Pool: "a100-cluster", Slots: 4, Free: 1, Host: "node-17.europe.example.com",
		Seen: time.Unix(0, 1), Software: "fantasia 1.2.3", Runs: "command"}}
)

// Tables fit terminals of any width, keep what matters most, and tell studies of one
// name apart. A file gets everything.
func TestTablesFitTheTerminal(t *testing.T) {
	now := time.Unix(2, 1)
	for name, table := range map[string]struct {
		write func(screen) error
		want  map[int]string
	}{
		"studies": {func(s screen) error { return studyTable(s, studies) }, map[int]string{
			40: `
STUDY     STATE        DONE    DIRECTORY
learnin…  RUNNING      42/128  …ng-rates
learnin…  INTERRUPTED  42/128  …-rates.1
`,
			60: `
STUDY          STATE        DONE    BEST       DIRECTORY
learning-rat…  RUNNING      42/128  0.0281234  …arning-rates
learning-rat…  INTERRUPTED  42/128  0.0281234  …ning-rates.1
`,
			80: `
STUDY         STATE        DONE    FAILED  BEST       RECOMMENDED  DIRECTORY
learning-ra…  RUNNING      42/128  2       0.0281234  0.0290001    …arning-rates
learning-ra…  INTERRUPTED  42/128  2       0.0281234  0.0290001    …ning-rates.1
`,
			120: `
STUDY           STATE        DONE    RUNNING  FAILED  BEST       RECOMMENDED  TIME   DIRECTORY
learning-rates  RUNNING      42/128  4        2       0.0281234  0.0290001    1m30s  .fantasia/learning-rates
learning-rates  INTERRUPTED  42/128  4        2       0.0281234  0.0290001    1m30s  .fantasia/learning-rates.1
`,
		}},
		"trials": {func(s screen) error { return trialTable(s, trials) }, map[int]string{
			40: `
TRIAL  STATE      VALUE      PARAMETERS
1      COMPLETED  0.0281234  lr=0.001 o…
12     FAILED     -          lr=0.1 opt…
`,
			60: `
TRIAL  STATE      VALUE      TIME  PARAMETERS
1      COMPLETED  0.0281234  -     lr=0.001 optimizer=adamw…
12     FAILED     -          -     lr=0.1 optimizer=sgd wid…
`,
			80: `
TRIAL  STATE      VALUE      TIME  SOURCE  PARAMETERS
1      COMPLETED  0.0281234  -     model   lr=0.001 optimizer=adamw width=64
12     FAILED     -          -     design  lr=0.1 optimizer=sgd width=8
`,
			120: `
TRIAL  STATE      VALUE      ATTEMPTS  WORKER            TIME  SOURCE  PARAMETERS
1      COMPLETED  0.0281234  1         worker-5f6d8-x2x  -     model   lr=0.001 optimizer=adamw width=64
12     FAILED     -          2         worker-5f6d8-x2x  -     design  lr=0.1 optimizer=sgd width=8
`,
		}},
		"workers": {func(s screen) error { return workerTable(s, workers, now) }, map[int]string{
			40: `
WORKER            STATE   BUSY  HEARD
worker-5f6d8-x2x  active  3/4   2s
`,
			60: `
WORKER        POOL         STATE   BUSY  HOST          HEARD
worker-5f6d…  a100-clust…  active  3/4   node-17.eur…  2s
`,
			80: `
WORKER            POOL          STATE   BUSY  RUNS     HOST                HEARD
worker-5f6d8-x2x  a100-cluster  active  3/4   command  node-17.europe.ex…  2s
`,
			120: `
WORKER            POOL          STATE   BUSY  RUNS     COMMANDS  HOST                        HEARD  SOFTWARE
worker-5f6d8-x2x  a100-cluster  active  3/4   command  own       node-17.europe.example.com  2s     fantasia 1.2.3
`,
		}},
	} {
		for width, want := range table.want {
			var b strings.Builder
			if err := table.write(screen{&b, width}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.String()); diff != "" {
				t.Errorf("%s in %d columns (-want +got):\n%s\n%s", name, width, diff, b.String())
			}
			for line := range strings.SplitSeq(b.String(), "\n") {
				if ansi.StringWidth(line) > width {
					t.Errorf("%s in %d columns: a line has %d: %q", name, width, ansi.StringWidth(line), line)
				}
			}
		}
		var whole, wide strings.Builder
		if err := table.write(screen{&whole, 0}); err != nil {
			t.Fatal(err)
		}
		if err := table.write(screen{&wide, 1000}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wide.String(), whole.String()); diff != "" || strings.Contains(whole.String(), "…") {
			t.Errorf("%s in a file (-wide terminal +file):\n%s", name, diff)
		}
	}
}

// Lists say what trials have cost, if the study has a cost that is not time.
func TestCostsAreListed(t *testing.T) {
	s, free := keptIn("", false), keptIn("", false)
	s.Trials.Cost = &fantasiav1.TrialsCost{Metric: "dollars", Spent: 12.5, Max: new(100.0)}
	priced := []view.Trial{
		{Trial: 1, State: study.TrialCompleted, Cost: new(2.5), Expected: 3}, {Trial: 2, State: study.TrialRunning, Expected: 4},
		{Trial: 3, State: study.TrialQueued},
	}
	var studies, list strings.Builder
	if err := errors.Join(studyTable(screen{&studies, 0}, []found{s, free}), trialTable(screen{&list, 0}, priced)); err != nil {
		t.Fatal(err)
	}
	for text, columns := range map[string][]string{
		studies.String(): {"COST", "12.5 of 100 dollars", "-"}, list.String(): {"COST", "2.5", "4 expected", "-"},
	} {
		lines := strings.Split(text, "\n")
		at := strings.Index(lines[0], columns[0])
		for i, want := range columns {
			if at < 0 || !strings.HasPrefix(lines[i][at:], want+" ") {
				t.Errorf("line %d does not say %q in the column %s:\n%s", i, want, columns[0], text)
			}
		}
	}
}

// Of several objectives a study shows the recommended front, and a list how many trials are on it.
func TestRecommendedFrontIsShown(t *testing.T) {
	s := keptIn("", false)
	s.Best, s.Objective = nil, &fantasiav1.Objective{Metric: "loss"}
	s.Objectives = []*fantasiav1.Objective{{Metric: "loss"}, {Metric: "seconds"}}
	s.Recommended = &fantasiav1.Recommendation{Trial: 9, Mean: 0.5, Sd: 0.1, Front: []*fantasiav1.ExpectedTrial{
		{Trial: 7, Means: []float64{0.25, 60}, Sds: []float64{0.1, 0}}, {Trial: 9, Means: []float64{0.5, 20}, Sds: []float64{0.1, 2}, Knee: true},
	}}
	var list, block strings.Builder
	if err := errors.Join(studyTable(screen{&list, 0}, []found{s}), studyBlock(screen{&block, 0}, s)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(list.String(), " 2 trials ") {
		t.Errorf("the list has no 2 trials:\n%s", list.String())
	}
	if want := "2 trials\n              trial 7: loss = 0.25 ± 0.1, seconds = 60\n              trial 9 (knee): loss = 0.5 ± 0.1, seconds " +
		"= 20 ± 2\n"; !strings.Contains(block.String(), want) {
		t.Errorf("the study does not show\n%s\n%s", want, block.String())
	}
	if got := studyLine(s.Study); !strings.Contains(got, "recommended trial 9, of 2 on the front of the models") {
		t.Error(got)
	}
}
