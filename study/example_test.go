package study_test

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
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
  trial: {command: [python, train.py]}
`

// ${args} stands for the parameters that the command does not name.
func ExampleExpandCommand() {
	argv, err := study.ExpandCommand(
		[]string{"python", "train.py", "--lr=${learning_rate}", "${args}"},
		[]string{"learning_rate", "hidden", "solver", "momentum"},
		study.Point{"learning_rate": 1e-3, "hidden": int64(64), "solver": "adam"}, "")
	fmt.Printf("%q %v\n", argv, err)
	// Output:
	// ["python" "train.py" "--lr=0.001" "--hidden=64" "--solver=adam"] <nil>
}

// A larger budget fits the state of a study; another scale does not.
func ExampleCompatible() {
	parse := func(text string) *study.Study {
		s, err := file.Parse([]byte(text))
		if err != nil {
			panic(err)
		}
		return s
	}
	old := parse(exampleFile)
	fmt.Println(study.Compatible(old, parse(strings.Replace(exampleFile, "maxTrials: 64", "maxTrials: 128", 1))))
	fmt.Println(study.Compatible(old, parse(strings.Replace(exampleFile, "max: 256, scale: log", "max: 256", 1))))
	// Output:
	// []
	// [spec.parameters.hidden.scale was "log" and is "linear"]
}
