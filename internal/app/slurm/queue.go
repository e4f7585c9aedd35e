package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// task is one element of an array of workers, as squeue shows it.
type task struct {
	// ID is the array's job and the element's index, such as 4711_3.
	ID string
	// State is Slurm's word, such as PENDING, and Reason why a task is in that state.
	State, Reason string
}

// The states of tasks (squeue(1), JOB STATE CODES) that are treated alike.
var (
	// waiting and active tasks work, or will: PREEMPTED is not among them, because a task that is
	// queued again is PENDING.
	waiting = map[string]bool{"PENDING": true, "CONFIGURING": true, "REQUEUED": true, "REQUEUE_HOLD": true, "REQUEUE_FED": true,
		"SPECIAL_EXIT": true, "RESV_DEL_HOLD": true}
	active = map[string]bool{"RUNNING": true, "SUSPENDED": true, "STOPPED": true, "SIGNALING": true, "RESIZING": true, "STAGE_OUT": true}
	// broken tasks ended in a way that another worker may repeat.
	broken = map[string]bool{"FAILED": true, "BOOT_FAIL": true, "NODE_FAIL": true, "OUT_OF_MEMORY": true, "LAUNCH_FAILED": true,
		"RECONFIG_FAIL": true}
)

const (
	stateCancelled  = "CANCELLED"
	stateCompleting = "COMPLETING"
)

// job returns the job of the array.
func (t *task) job() string {
	job, _, _ := strings.Cut(t.ID, "_")
	return job
}

// queue calls the commands of Slurm.
type queue struct{ job *Job }

// call runs a command of Slurm. The error has what the command said.
func call(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not on this machine: run this where you run Slurm's commands", name)
	}
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		return "", fmt.Errorf("%s: %s", name, text)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return out.String(), nil
}

// submit submits an array of n workers, and returns its job.
func (q queue) submit(ctx context.Context, n int) (string, error) {
	script, err := q.job.Script(n)
	if err != nil {
		return "", err
	}
	out, err := call(ctx, script, "sbatch", "--parsable")
	if err != nil {
		return "", err
	}
	job, _, _ := strings.Cut(strings.TrimSpace(out), ";") // the cluster's name may follow
	return job, nil
}

// tasks returns the tasks of these jobs, except those that ended so long ago that Slurm has
// forgotten them.
func (q queue) tasks(ctx context.Context, jobs map[string]bool) ([]task, error) {
	out, err := call(ctx, "", "squeue", "--me", "--noheader", "--array", "--states=all", "--name="+q.job.Name(), "--format=%F_%K|%T|%r")
	if err != nil {
		return nil, err
	}
	var found []task
	for line := range strings.Lines(out) {
		part := strings.SplitN(strings.TrimSpace(line), "|", 3)
		if t := (task{ID: part[0]}); len(part) == 3 && jobs[t.job()] {
			t.State, t.Reason = part[1], part[2]
			found = append(found, t)
		}
	}
	return found, nil
}

// cancel cancels tasks or whole jobs. Those that have ended are no error.
func (q queue) cancel(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := call(ctx, "", "scancel", append([]string{"--quiet"}, ids...)...)
	return err
}
