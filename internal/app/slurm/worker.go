package slurm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
)

// Worker runs a worker of Slurm's task until ctx ends. getenv has the variables of Slurm; o has
// the number of slots and the like.
func Worker(ctx context.Context, shared string, o *workernode.Options, getenv func(string) string) error {
	id, err := taskID(getenv)
	if err != nil {
		return err
	}
	r, err := readRecord(shared)
	if err != nil {
		return err
	}
	if r.NATS == "" {
		return fmt.Errorf("%s does not say where the coordinator is: --shared must be the directory of a running fantasia slurm, as this node "+
			"sees it", filepath.Join(shared, recordFile))
	}
	o.NATS, o.Access.Creds = []string{r.NATS}, filepath.Join(shared, seedFile)
	w := &o.Worker
	w.Name, w.Pool = ownName(id), r.Pool
	w.StateDir, w.Checkpoints = filepath.Join(shared, workersDir, w.Name), filepath.Join(shared, "checkpoints")
	w.AllowStudyCommands, w.PassEnv = true, []string{"*"} // the study, the nodes and the files are all the user's
	return workernode.Run(ctx, *o)
}

// taskID returns the id of the task that this process runs in.
func taskID(getenv func(string) string) (string, error) {
	if id := workernode.SlurmJob(getenv); id != "" {
		return id, nil
	}
	return "", errors.New("this is no job of Slurm (SLURM_JOB_ID is not set): fantasia slurm submits this command by sbatch")
}
