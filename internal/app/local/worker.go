package local

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker"
)

// sparedTimeout bounds how long the end of a trial waits for the coordinator.
const sparedTimeout = 2 * time.Second

// workerDir keeps the spool of results and the directories of the trials.
func (n *node) workerDir() string { return filepath.Join(n.o.State, "worker") }

// spared returns the trials whose files stay beyond the bound: the best one, and those that the model
// recommends.
func (n *node) spared(c *coordinator.Coordinator) ([]messaging.AttemptID, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sparedTimeout)
	defer cancel()
	p, err := c.Progress(ctx, n.o.Study.Metadata.Name)
	if err != nil {
		return nil, fmt.Errorf("find the best trial: %w", err)
	}
	recommended := &p.Status.Recommended
	numbers := []int{recommended.Trial} // 0 is no trial
	if p.Best != nil {
		numbers = append(numbers, p.Best.Number)
	}
	for i := range recommended.Front {
		numbers = append(numbers, recommended.Front[i].Trial)
	}
	return each.Of(numbers, func(number int) messaging.AttemptID {
		return messaging.AttemptID{Study: p.Study.ID, Trial: number}
	}), nil
}

// newWorker returns the only worker, with a slot for each parallel trial.
func (n *node) newWorker(c *coordinator.Coordinator) (*worker.Worker, error) {
	o := worker.DefaultOptions()
	o.Name, o.Pool, o.Slots = workerName, n.o.Study.Spec.Pool, n.o.Workers
	o.StateDir = n.workerDir()
	o.Checkpoints = filepath.Join(n.o.State, "checkpoints")
	o.AllowStudyCommands = true
	o.KeepTrials = n.o.KeepTrials
	o.Spared = func() ([]messaging.AttemptID, error) { return n.spared(c) }
	o.PassEnv = []string{"*"} // as a shell would
	o.NewEvaluator = n.o.Evaluator
	o.Bus = n.worker
	o.Software = "fantasia " + n.o.Version
	o.Logger, o.Tracer, o.Meter = n.log, n.tel.Tracer(), n.tel.Meter()
	if n.o.GPUs != "" {
		o.GPUs = n.o.GPUs
	}
	w, err := worker.New(o)
	if err != nil {
		return nil, fmt.Errorf("make the worker: %w", err)
	}
	return w, nil
}
