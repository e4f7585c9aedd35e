package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// asProgram is set if the test binary is started as a study's program.
const asProgram = "BENCH_TEST_PROGRAM"

// serveProgram is a program in stream mode. The value is (x−2)²; a point with x above 9
// is infeasible, and every fifth trial fails. In the mode "broken", all trials fail.
func serveProgram() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var line struct {
			Fantasia struct {
				Trial      int
				Parameters struct{ X float64 }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		trial, x := line.Fantasia.Trial, line.Fantasia.Parameters.X
		switch {
		case trial%5 == 0 || os.Getenv(asProgram) == "broken":
			fmt.Printf(`{"fantasia": {"trial": %d, "error": "no luck with trial %d"}}`+"\n", trial, trial)
		case x > 9:
			fmt.Printf(`{"fantasia": {"trial": %d, "infeasible": "too large"}}`+"\n", trial)
		default:
			fmt.Printf(`{"fantasia": {"trial": %d, "metrics": {"loss": %v}, "done": true}}`+"\n", trial, (x-2)*(x-2))
		}
	}
}

// programStudy returns a study whose program is the test binary.
func programStudy(t *testing.T, mode string) (*study.Study, []byte) {
	t.Helper()
	content := fmt.Appendf(nil, `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: parabola}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 10}]
  algorithm: {name: random}
  budget: {maxTrials: 12}
  trial: {command: [%q], mode: stream, env: {%s: %s}}
`, os.Args[0], asProgram, mode)
	s, err := inject.ParseStudy("study.yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	return s, content
}

func TestStreamProgram(t *testing.T) {
	s, content := programStudy(t, "stream")
	dir := t.TempDir()
	o, err := NewProgram(s, content, filepath.Join(dir, "programs"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	variants, err := ParseVariants([]string{"random,sobol"})
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{
		Variants: variants, Objectives: []*Objective{o}, Modes: []Mode{Synchronous, Asynchronous}, Laws: []string{"exponential"},
		Seeds: []uint64{3}, Durations: Drawn, Workers: 3, Trials: 12, Version: "test",
	}
	groups, _ := play(t, p, filepath.Join(dir, "runs.jsonl"), 2)
	for _, g := range groups {
		for _, run := range g.Runs {
			seen := map[optimizer.Outcome]int{}
			for _, e := range run.Result.Evaluations {
				seen[e.Outcome]++
				if failed := e.Outcome == optimizer.OutcomeFailed; failed != (e.Trial%5 == 0) {
					t.Errorf("%s: trial %d %s", &run.Spec, e.Trial, e.Outcome)
				}
				if e.Outcome == optimizer.OutcomeCompleted && (e.Value < 0 || e.Value > 49 || e.Loss != e.Value) {
					t.Errorf("%s: trial %d has the value %v and the loss %v", &run.Spec, e.Trial, e.Value, e.Loss)
				}
			}
			if seen[optimizer.OutcomeCompleted] < 7 || seen[optimizer.OutcomeFailed] < 2 {
				t.Errorf("%s: %v", &run.Spec, seen)
			}
			if run.Result.Recommended != nil {
				t.Errorf("%s: recommended %v without a model", &run.Spec, *run.Result.Recommended)
			}
		}
	}
	// Resuming runs nothing again; another file is another objective.
	_, last := play(t, p, filepath.Join(dir, "runs.jsonl"), 2)
	if last.Kept != last.All {
		t.Errorf("progress %+v, want everything kept", last)
	}
	other, err := NewProgram(s, append(content, '\n'), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if other.Content == o.Content {
		t.Error("another file has the same digest")
	}
}

// Measured durations are the durations of the evaluations, in seconds.
func TestMeasuredDurations(t *testing.T) {
	s, content := programStudy(t, "stream")
	o, err := NewProgram(s, content, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	random, err := registry.New("random", nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Play(t.Context(), Spec{
		Optimizer: "random", Objective: o.Name, Mode: Sequential, Law: string(Measured), Durations: Measured, Workers: 1, Trials: 4,
	}, random, o)
	if err != nil {
		t.Fatal(err)
	}
	if r := run.Result; r.End <= 0 || r.End > run.Seconds || r.Idle > 1e-9 {
		t.Errorf("the run ends at %v and was idle for %v; it took %v", r.End, r.Idle, run.Seconds)
	}
}

func TestBrokenProgram(t *testing.T) {
	s, content := programStudy(t, "broken")
	o, err := NewProgram(s, content, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	random, err := registry.New("random", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Play(t.Context(), Spec{
		Optimizer: "random", Objective: o.Name, Mode: Sequential, Law: "constant", Durations: Drawn, Workers: 1, Trials: 9,
	}, random, o)
	if !errors.Is(err, ErrBroken) {
		t.Errorf("%v, want ErrBroken", err)
	}
}
