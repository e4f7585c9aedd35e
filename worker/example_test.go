package worker_test

import (
	"context"
	"fmt"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// A worker that evaluates trials with a Go function instead of a program, over
// a bus in memory.
func Example() {
	dir, err := os.MkdirTemp("", "worker")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	broker := membus.New(membus.Options{})
	leader := broker.Leader()
	defer leader.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	assign(ctx, leader)

	o := worker.DefaultOptions()
	o.Name, o.StateDir = "example", dir
	o.NewEvaluator = func(int) (evaluation.Evaluator, error) {
		return evaluation.Func(func(_ context.Context, p study.Point, _ evaluation.Task) (float64, error) {
			x := p["x"].(float64)
			return (x - 1) * (x - 1), nil
		}), nil
	}
	bus, err := broker.Worker(o.Name, o.Pool)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bus.Close()
	o.Bus = bus
	w, err := worker.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()

	results, err := leader.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer results.Close()
	entry, err := results.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(entry.Result.Outcome, entry.Result.Values.First())
	cancel()
	fmt.Println(<-done)
	// Output:
	// completed 4
	// <nil>
}

// assign hands one trial out.
func assign(ctx context.Context, leader messaging.Leader) {
	for _, err := range []error{
		leader.Setup(ctx, []string{"default"}),
		leader.Fence(ctx, 1),
		leader.Assign(ctx, []*messaging.Assignment{{
			AttemptID: messaging.AttemptID{Study: "study", Trial: 1, Attempt: 1, Nonce: "nonce"},
			Pool:      "default", StudyName: "parabola",
			Parameters: study.Point{"x": 3.0}, ParameterOrder: []string{"x"},
			Objective: study.Objective{Metric: "y", Direction: study.Minimize},
		}}),
	} {
		if err != nil {
			fmt.Println(err)
		}
	}
}
