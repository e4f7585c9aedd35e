package study_test

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
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

// All that is wrong with a study file is reported at once, each with its place.
func ExampleParse() {
	file := strings.NewReplacer("min: 16", "min: 0", "when: {solver", "when: {slover", "${learning_rate}", "${lr}").Replace(exampleFile)
	_, err := study.Parse([]byte(file), study.WithFile("digits.yaml"))
	fmt.Println(err)
	// Output:
	// digits.yaml:8:38: spec.parameters[1].min: 0 is not positive: scale log needs a range above 0
	// digits.yaml:10:63: spec.parameters[3].when.slover: there is no parameter "slover" (did you mean "solver"?)
	// digits.yaml:13:39: spec.trial.command[2]: ${lr} names no parameter: learning_rate, hidden, solver, momentum, or args, overrides, file
}

// A point is drawn parameter by parameter: each comes after those that decide
// whether it is active.
func ExampleSpace() {
	s, err := study.Parse([]byte(exampleFile))
	if err != nil {
		panic(err)
	}
	space, err := s.Space()
	if err != nil {
		panic(err)
	}
	point := study.Point{}
	for _, p := range space.Parameters() {
		if space.Active(point, p.Name) {
			point[p.Name] = p.FromUnit(1)
		}
	}
	fmt.Println(space.Key(point), space.Feasible(point))
	fmt.Println(space.Check(point))
	// Output:
	// {"learning_rate":0.1,"hidden":256,"solver":"sgd","momentum":0.99} false
	// not a point of the space: it does not meet the constraint "hidden * learning_rate <= 10"
}

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

// A larger budget fits the state of a study, another range does not.
func ExampleCompatible() {
	parse := func(text string) *study.Study {
		s, err := study.Parse([]byte(text))
		if err != nil {
			panic(err)
		}
		return s
	}
	old := parse(exampleFile)
	fmt.Println(study.Compatible(old, parse(strings.Replace(exampleFile, "maxTrials: 64", "maxTrials: 128", 1))))
	fmt.Println(study.Compatible(old, parse(strings.Replace(exampleFile, "max: 256", "max: 512", 1))))
	// Output:
	// []
	// [spec.parameters.hidden.max was 256 and is 512]
}
