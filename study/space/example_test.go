package space_test

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
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

// A point is drawn parameter by parameter: each comes after those that decide
// whether it is active.
func ExampleSpace() {
	s, err := file.Parse([]byte(exampleFile))
	if err != nil {
		panic(err)
	}
	compiled, err := celspace.Of(s)
	if err != nil {
		panic(err)
	}
	point := study.Point{}
	for _, p := range compiled.Parameters() {
		if compiled.Active(point, p.Name) {
			point[p.Name] = p.FromUnit(1)
		}
	}
	fmt.Println(compiled.Key(point), compiled.Feasible(point))
	fmt.Println(compiled.Check(point))
	// Output:
	// {"learning_rate":0.1,"hidden":256,"solver":"sgd","momentum":0.99} false
	// not a point of the space: it does not meet the constraint "hidden * learning_rate <= 10"
}
