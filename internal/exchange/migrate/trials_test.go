package migrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

func specFrom(t testing.TB, text string) *study.Spec {
	t.Helper()
	s, err := file.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &s.Spec
}

const mixed = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: mixed}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: lr, type: float, min: 1e-5, max: 0.1, scale: log}
    - {name: width, type: int, min: 16, max: 256}
    - {name: solver, type: categorical, values: [adam, sgd]}
    - {name: momentum, type: float, min: 0, max: 0.99, when: {solver: [sgd]}}
    - {name: batch, type: ordinal, values: [32, 64]}
    - {name: bias, type: bool}
    - {name: seed, type: fixed, value: 7}
  budget: {maxTrials: 10}
`

var (
	firstPoint  = study.Point{"lr": 0.001, "width": int64(32), "solver": "adam", "batch": int64(64), "bias": true, "seed": int64(7)}
	secondPoint = study.Point{"lr": 0.01, "width": int64(64), "solver": "sgd", "momentum": 0.5, "batch": int64(32), "bias": false,
		"seed": int64(7)}
	wantSkipped = []string{"completed", "whole number", "want adam, sgd", "want a number from 1e-05 to 0.1", "finite number", "no value"}
)

// check compares what was read of the two good trials and of six that must be left out.
func check(t *testing.T, trials []Evaluated, skipped []Skipped, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 2 || trials[0].Values.First() != 0.25 || trials[1].Values.First() != 0.5 {
		t.Fatalf("read %+v", trials)
	}
	for i, want := range []study.Point{firstPoint, secondPoint} {
		if diff := cmp.Diff(want, trials[i].Point); diff != "" {
			t.Errorf("point %d (-want +got):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff(map[string]float64{"accuracy": 0.9}, trials[0].Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if len(skipped) != len(wantSkipped) {
		t.Fatalf("left out %+v", skipped)
	}
	for i, want := range wantSkipped {
		if !strings.Contains(skipped[i].Why, want) {
			t.Errorf("%s was left out: %s; want a reason with %q", skipped[i].Place, skipped[i].Why, want)
		}
	}
}

func TestTrialsOfATable(t *testing.T) {
	const table = `trial,state,value,metric:accuracy,parameter:lr,parameter:width,parameter:solver,parameter:momentum,parameter:batch,parameter:bias
1,COMPLETED,0.25,0.9,0.001,32,adam,,64,true
2,COMPLETED,0.5,,1e-2,64,sgd,0.5,32,False
3,FAILED,,,0.001,32,adam,,64,true
4,COMPLETED,1,,0.001,32.5,adam,,64,true
5,COMPLETED,1,,0.001,32,lbfgs,,64,true
6,COMPLETED,1,,0.5,32,adam,,64,true
7,COMPLETED,nan,,0.001,32,adam,,64,true
8,COMPLETED,,,0.001,32,adam,,64,true
`
	spec := specFrom(t, mixed)
	trials, skipped, err := CSV(strings.NewReader(table), spec)
	check(t, trials, skipped, err)
	if trials[1].Place != "line 3" {
		t.Errorf("the second trial is at %s", trials[1].Place)
	}
	// Optuna's data frame, and plain names.
	for _, header := range []string{
		"number,value,params_lr,params_width,params_solver,params_momentum,params_batch,params_bias,state",
		"number,loss,lr,width,solver,momentum,batch,bias,state",
	} {
		trials, skipped, err = CSV(strings.NewReader(header+"\n0,0.25,0.001,32,adam,,64,true,COMPLETE\n"), spec)
		if err != nil || len(skipped) > 0 || len(trials) != 1 {
			t.Fatalf("%+v, %+v, %v", trials, skipped, err)
		}
		if diff := cmp.Diff(firstPoint, trials[0].Point); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTrialsOfJSON(t *testing.T) {
	const lines = `
{"trial": 1, "state": "COMPLETED", "value": 0.25, "metrics": {"loss": 0.25, "accuracy": 0.9}, "parameters": {"lr": 0.001, "width": 32, "solver": "adam", "batch": 64, "bias": true}}
{"loss": 0.5, "lr": 0.01, "width": 64, "solver": "sgd", "momentum": 0.5, "batch": 32, "bias": false}
{"state": "TRIAL_STATE_PRUNED", "value": 1, "parameters": {}}
{"value": 1, "parameters": {"lr": 0.001, "width": 32.5, "solver": "adam", "batch": 64, "bias": true}}
{"values": [1], "parameters": {"lr": 0.001, "width": 32, "solver": "lbfgs", "batch": 64, "bias": true}}
{"metrics": {"loss": 1}, "parameters": {"lr": 0.5, "width": 32, "solver": "adam", "batch": 64, "bias": true}}
{"value": "NaN", "parameters": {"lr": 0.001, "width": 32, "solver": "adam", "batch": 64, "bias": true}}
{"parameters": {"lr": 0.001, "width": 32, "solver": "adam", "batch": 64, "bias": true}}
`
	spec := specFrom(t, mixed)
	trials, skipped, err := JSON(strings.NewReader(lines), spec)
	check(t, trials, skipped, err)
	list := "[" + strings.ReplaceAll(strings.TrimSpace(lines), "\n", ",") + "]"
	trials, skipped, err = JSON(strings.NewReader(list), spec)
	check(t, trials, skipped, err)
}

// The values are those of testdata/make_optuna.py, which Optuna evaluated: see TestOptuna
// for the best trial. Trial 3 was pruned.
func TestTrialsOfOptuna(t *testing.T) {
	const text = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: moved}
spec:
  objective: {metric: value, direction: minimize}
  parameters:
    - {name: lr, type: float, min: 1e-5, max: 0.1, scale: log}
    - {name: width, type: int, min: 16, max: 256}
    - {name: layers, type: int, min: 1, max: 4}
    - {name: dropout, type: float, min: 0, max: 0.5}
    - {name: solver, type: categorical, values: [adam, sgd]}
    - {name: momentum, type: float, min: 0, max: 0.99, when: {solver: [sgd]}}
  budget: {maxTrials: 10}
`
	for _, path := range stored("optuna") {
		t.Run(path, func(t *testing.T) { testTrialsOfOptuna(t, path, text) })
	}
}

func testTrialsOfOptuna(t *testing.T, path, text string) {
	o := OptunaOptions{Python: python, Study: "My Study"}
	trials, skipped, err := OptunaTrials(t.Context(), path, o, specFrom(t, text))
	if err != nil || len(trials) != 11 || len(skipped) != 1 || skipped[0].Place != "trial 3" {
		t.Fatalf("%d trials, left out %+v, %v", len(trials), skipped, err)
	}
	best := trials[0]
	for _, one := range trials {
		p := one.Point
		lr, width, layers, dropout := p["lr"].(float64), p["width"].(int64), p["layers"].(int64), p["dropout"].(float64)
		if want := abs(lr-1e-3) + abs(float64(width)-64)/64 + float64(layers) + dropout; abs(want-one.Values.First()) > 1e-12 {
			t.Errorf("%s has the value %v, want %v", one.Place, one.Values.First(), want)
		}
		if one.Values.First() < best.Values.First() {
			best = one
		}
	}
	if best.Point["lr"] != 1.923730509654649e-05 {
		t.Errorf("the best trial is %+v", best)
	}
	_, _, err = OptunaTrials(t.Context(), path, o, specFrom(t, strings.Replace(text, "minimize", "maximize", 1)))
	if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "Optuna's study is to minimize, this one to maximize") {
		t.Errorf("another direction: %v", err)
	}
}

func abs(v float64) float64 { return max(v, -v) }

func TestTrialsThatCannotBeRead(t *testing.T) {
	spec := specFrom(t, mixed)
	for text, want := range map[string]string{
		"":                     "read the header",
		"lr,width\n1,2\n":      "no column is the objective: want one named value or loss, got lr, width",
		"loss,lr\n1,2\n":       "no column is the parameter width, got loss, lr",
		"loss,lr,width\n1,2\n": "no column is the parameter solver",
		"value,lr,width,solver,batch,bias\n1,\"2": "line",
	} {
		if _, _, err := CSV(strings.NewReader(text), spec); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{"{": "after object 0", "[1]": "want an object for each trial, got 1",
		`{"value": 1} x`: "after object 1"} {
		if _, _, err := JSON(strings.NewReader(text), spec); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
