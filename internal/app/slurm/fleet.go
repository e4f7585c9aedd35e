package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/scale/stabilize"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// downAfter is how long fewer workers must suffice before some are cancelled.
	downAfter = time.Minute
	// retryAfter is how long after a refused submission the next one is tried.
	retryAfter = time.Minute
	// maxBroken is how many workers may fail, while no trial ends, before the run gives up.
	maxBroken = 3
	// lastWords is how much of a failed worker's log is shown, in bytes.
	lastWords = 1 << 10
	// callTimeout limits one call of Slurm's commands.
	callTimeout = time.Minute
)

// ErrCancelled means that somebody has cancelled all workers.
var ErrCancelled = errors.New("all workers were cancelled in Slurm")

// Fleet keeps workers of a study in Slurm: as many as are useful, while the study runs.
type Fleet struct {
	Job Job
	// Pool is the study's pool.
	Pool string
	// Workers is the largest number of workers.
	Workers int
	// Poll is how often Slurm is asked for the workers.
	Poll time.Duration
	// Say tells the user what happens to the workers.
	Say func(text string)

	queue  queue
	log    *slog.Logger
	record record
	window stabilize.Window
	// refused is when Slurm last refused a submission.
	refused time.Time
	// dismissed are the tasks that this process has cancelled, failed the broken ones that were seen.
	dismissed, failed map[string]bool
	// ended is how many trials have ended, and streak how many workers have broken since the last of
	// them did.
	ended, streak int
}

// Run keeps workers running until ctx ends, and then cancels them and waits until they have handed
// back what they ran.
func (f *Fleet) Run(ctx context.Context, c *coordinator.Coordinator, log *slog.Logger) (err error) {
	f.log, f.queue, f.dismissed, f.failed = log, queue{&f.Job}, map[string]bool{}, map[string]bool{}
	if f.record, err = readRecord(f.Job.Shared); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.dismiss(context.WithoutCancel(ctx))) }()
	for ctx.Err() == nil {
		if err := f.step(ctx, c); err != nil && ctx.Err() == nil {
			return err
		}
		backoff.Sleep(ctx, f.Poll)
	}
	return nil
}

// step compares the workers that there are with those that are useful.
func (f *Fleet) step(ctx context.Context, c *coordinator.Coordinator) error {
	useful, err := c.Useful(ctx)
	if err != nil {
		return nil //nolint:nilerr // between two terms
	}
	p, err := c.Progress(ctx, f.Job.Study)
	if err != nil {
		return nil //nolint:nilerr // the same
	}
	if ended := p.Status.Counts.Ended(); ended > f.ended {
		f.ended, f.streak = ended, 0
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tasks, err := f.queue.tasks(asking, f.record.jobs())
	if err != nil {
		f.log.WarnContext(ctx, "cannot ask Slurm for the workers; retrying", telemetry.LogError, err)
		return nil
	}
	now := tally(tasks, f.dismissed)
	if err := f.judge(now.broken); err != nil {
		return err
	}
	most := f.Workers - now.cancelled
	if most <= 0 {
		return ErrCancelled
	}
	wanted := min(most, (useful[f.Pool]+f.Job.Slots-1)/f.Job.Slots)
	there := len(now.waiting) + len(now.active)
	switch decided := f.window.Decide(time.Now(), wanted, there, downAfter); {
	case decided > there:
		return f.submit(asking, decided-there)
	case decided < there:
		f.reduce(asking, c, now, there-decided)
	}
	return nil
}

// submit adds n workers. A refusal of the first ones ends the run; later ones are tried again.
func (f *Fleet) submit(ctx context.Context, n int) error {
	if time.Since(f.refused) < retryAfter {
		return nil
	}
	job, err := f.queue.submit(ctx, n)
	if err != nil && len(f.record.Jobs) == 0 {
		return fmt.Errorf("submit workers: %w", err)
	}
	if err != nil {
		f.refused = time.Now()
		f.Say(fmt.Sprintf("workers      Slurm refuses %d more; trying again in a minute: %v", n, err))
		return nil
	}
	f.Say(fmt.Sprintf("workers      submitted %d, job %s", n, job))
	f.record.Jobs = append(f.record.Jobs, job)
	return f.record.write(f.Job.Shared)
}

// reduce cancels up to n workers that are not needed.
func (f *Fleet) reduce(ctx context.Context, c *coordinator.Coordinator, now count, n int) {
	free := map[string]bool{}
	for _, w := range c.Workers() {
		free[w.Worker] = w.Free == w.Slots
	}
	ids := now.surplus(n, func(t task) bool { return free[workerName(f.Pool, t.ID)] })
	if err := f.queue.cancel(ctx, ids...); err != nil {
		f.log.WarnContext(ctx, "cannot cancel workers that are not needed", telemetry.LogError, err)
		return
	}
	for _, id := range ids {
		f.dismissed[id] = true
	}
	if len(ids) > 0 {
		f.Say(fmt.Sprintf("workers      cancelled %d that are not needed", len(ids)))
	}
}

// judge ends the run when workers fail one after the other.
func (f *Fleet) judge(broken []task) error {
	for _, t := range broken {
		if f.failed[t.ID] {
			continue
		}
		f.failed[t.ID] = true
		words := f.words(t)
		f.log.Warn("a worker has failed", telemetry.LogWorker, t.ID, telemetry.LogReason, t.State, "log", words)
		if f.streak++; f.streak >= maxBroken {
			return fmt.Errorf("%d workers failed one after the other; the last one, %s, is %s (%s), and its log ends with:\n%s", f.streak, t.ID,
				t.State, t.Reason, words)
		}
	}
	return nil
}

// words returns the end of a worker's log.
func (f *Fleet) words(t task) string {
	text, err := os.ReadFile(filepath.Join(f.Job.logs(), t.ID+".log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-lastWords):]))
}

// dismiss cancels all workers and waits until none is left, or they have had their time.
func (f *Fleet) dismiss(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.Job.Drain+callTimeout)
	defer cancel()
	jobs := f.record.jobs()
	for asked := false; ; asked = true {
		tasks, err := f.queue.tasks(ctx, jobs)
		if err != nil {
			return fmt.Errorf("cancel the workers: %w; see squeue --me --name=%s", err, f.Job.Name())
		}
		left := slices.DeleteFunc(tasks, func(t task) bool {
			return !waiting[t.State] && !active[t.State] && t.State != stateCompleting
		})
		if len(left) == 0 {
			return nil
		}
		if !asked {
			if err := f.queue.cancel(ctx, slices.Sorted(maps.Keys(jobs))...); err != nil {
				return fmt.Errorf("cancel the workers: %w", err)
			}
		}
		if !backoff.Sleep(ctx, time.Second) {
			return fmt.Errorf("%d workers have not ended; see squeue --me --name=%s", len(left), f.Job.Name())
		}
	}
}
