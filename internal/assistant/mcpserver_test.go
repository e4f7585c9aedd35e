package assistant_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/internal/assistant"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// testInterceptors repeat calls while a server that has just started has no leader.
func testInterceptors() []connect.ClientOption {
	return []connect.ClientOption{connect.WithInterceptors(assistant.Bearing(func() string { return "" }),
		connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
				for {
					resp, err := next(ctx, req)
					if connect.CodeOf(err) != connect.CodeUnavailable || !backoff.Sleep(ctx, 20*time.Millisecond) {
						return resp, err
					}
				}
			}
		}))}
}

const loopFile = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: loop}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: lr, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: layers, type: int, min: 1, max: 6}
  algorithm: {name: random, seed: 7}
  budget: {maxTrials: 9}
  parallelism: 2
  earlyStopping: {name: threshold, settings: {upper: 2.7}}
  initial: # of all trials: suggestions are made ahead when the machine is slow, which draws other points
    - {lr: 0.001, layers: 5}
    - {lr: 0.02, layers: 3}
    - {lr: 0.00005, layers: 6}
    - {lr: 0.0005, layers: 2}
    - {lr: 0.002, layers: 4}
    - {lr: 0.005, layers: 1}
    - {lr: 0.0001, layers: 3}
    - {lr: 0.03, layers: 2}
    - {lr: 0.0002, layers: 1}
`

// train stands for the program that is tuned: it returns the loss at each step.
func train(parameters map[string]any) (losses []float64) {
	lr, _ := parameters["lr"].(float64)
	layers, _ := parameters["layers"].(float64)
	for step := range 3 {
		loss := math.Abs(math.Log10(lr)+3) + 0.1*layers + 1/float64(1+step)
		losses = append(losses, math.Round(1e4*loss)/1e4) // the same on every processor
	}
	return losses
}

// evaluate plays one trial of a study to its end: it reports each step and stops where it is
// told to.
func (s *session) evaluate(study string, trial map[string]any) {
	s.Helper()
	parameters, _ := trial["parameters"].(map[string]any)
	last, outcome := 0.0, "completed"
	for step, loss := range train(parameters) {
		last = loss
		answer := s.call("report",
			map[string]any{"study": study, "trial": trial["trial"], "step": step + 1, "metrics": map[string]any{"loss": loss}})
		if answer["action"] == "prune" {
			outcome = "pruned"
			break
		}
	}
	told := s.call("tell",
		map[string]any{"study": study, "trial": trial["trial"], "outcome": outcome, "metrics": map[string]any{"loss": last}})
	got, _ := told["trial"].(map[string]any)
	if got["state"] != strings.ToUpper(outcome) {
		s.Errorf("trial %v is %v, want %s", trial["trial"], got["state"], outcome)
	}
}

// first asks for one trial.
func (s *session) first(study string) map[string]any {
	s.Helper()
	trials, _ := s.call("ask", map[string]any{"study": study})["trials"].([]any)
	if len(trials) != 1 {
		s.Fatalf("asked %s, got %v, want one trial", study, trials)
	}
	trial, _ := trials[0].(map[string]any)
	return trial
}

// A client calls every tool, step by step, over both transports, on a real coordinator. The golden
// file has the answers.
func TestSession(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			s := meet(t, transport(t, serve(t, place(t, t.TempDir()))))
			s.call("check_study", map[string]any{"studyFile": strings.Replace(loopFile, "min: 1,", "min: 9,", 1)})
			s.call("check_study", map[string]any{"studyFile": loopFile})
			s.fail("create_study", map[string]any{"studyFile": strings.Replace(loopFile, "maxTrials: 9", "maxTrials: 0", 1)}, "10:",
				"spec.budget.maxTrials", "0")
			s.call("create_study", map[string]any{"studyFile": loopFile})
			s.fail("create_study", map[string]any{"studyFile": loopFile}, "loop", "exists")
			s.call("best", map[string]any{"study": "loop"})
			for i := range 6 {
				s.quiet = i != 0 && i != 2 // the first one, and one that is pruned
				s.evaluate("loop", s.first("loop"))
			}
			s.quiet = false
			failed := s.first("loop")
			s.call("tell", map[string]any{"study": "loop", "trial": failed["trial"], "outcome": "failed", "reason": "out of memory"})
			back := s.first("loop")
			s.call("tell", map[string]any{"study": "loop", "trial": back["trial"], "outcome": "released"})
			if again := s.first("loop"); again["trial"] != back["trial"] {
				t.Errorf("trial %v was released, and then %v was given out", back["trial"], again["trial"])
			} else {
				s.call("tell", map[string]any{"study": "loop", "trial": again["trial"], "outcome": "infeasible"})
			}
			s.quiet = true
			s.evaluate("loop", s.first("loop"))
			s.quiet = false
			if answer := s.call("ask", map[string]any{"study": "loop", "waitSeconds": 1}); answer["state"] != "completed" {
				t.Errorf("after its budget the study is %v", answer["state"])
			}
			s.call("get_study", map[string]any{"study": "loop", "file": true})
			s.call("list_studies", map[string]any{})
			s.call("list_trials", map[string]any{"study": "loop", "states": []string{"completed"}, "limit": 2})
			s.call("get_trial", map[string]any{"study": "loop", "trial": 1})
			s.call("best", map[string]any{"study": "loop"})
			s.call("optimal_trials", map[string]any{"study": "loop"})
			s.try("diagnose", map[string]any{"study": "loop"})
			s.try("picture", map[string]any{"study": "loop", "picture": "history"})
			s.call("stop_study", map[string]any{"study": "loop", "reason": "enough"})
			s.golden("session.txt")
		})
	}
}
