package file_test

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/study/file"
)

const exampleFile = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: digits}
spec:
  objective: {metric: error, direction: minimize}
  parameters:
    - {name: learning_rate, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: hidden, type: int, min: 16, max: 256, scale: log}
    - {name: solver, type: categorical, values: [adam, sgd]}
    - {name: momentum, type: float, min: 0, max: 0.99, when: {solver: [sgd]}}
  constraints: ["hidden * learning_rate <= 10"]
  budget: {maxTrials: 64}
  trial: {command: [python, train.py, "--lr=${learning_rate}", "${args}"]}
`

// All problems of a study file are reported at once, each with its place.
func ExampleParse() {
	text := strings.NewReplacer("min: 16", "min: 0", "when: {solver", "when: {slover", "${learning_rate}", "${lr}").Replace(exampleFile)
	_, err := file.Parse([]byte(text), file.WithFile("digits.yaml"))
	fmt.Println(err)
	// Output:
	// digits.yaml:8:38: spec.parameters[1].min: 0 is not positive: scale log needs a range above 0
	// digits.yaml:10:63: spec.parameters[3].when.slover: there is no parameter "slover" (did you mean "solver"?)
	// digits.yaml:13:39: spec.trial.command[2]: ${lr} names no parameter: learning_rate, hidden, solver, momentum, or args, overrides, file
}
