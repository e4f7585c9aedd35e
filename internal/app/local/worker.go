package local

import (
	"fmt"
	"path/filepath"

	"github.com/fantasia-hpo/fantasia/worker"
)

// workerDir keeps the spool of results and the directories of the trials.
func (n *node) workerDir() string { return filepath.Join(n.o.State, "worker") }

// newWorker returns the only worker, with a slot for each parallel trial.
func (n *node) newWorker() (*worker.Worker, error) {
	o := worker.DefaultOptions()
	o.Name, o.Pool, o.Slots = workerName, n.o.Study.Spec.Pool, n.o.Workers
	o.StateDir = n.workerDir()
	o.Checkpoints = filepath.Join(n.o.State, "checkpoints")
	o.AllowStudyCommands = true
	o.KeepTrials = 0          // the folder is the user's
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
