package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/internal/app/slurm"
	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
)

const slurmLong = `Runs a study whose trials are evaluated by workers in Slurm. This command is the
coordinator: run it on a login node, in tmux or screen, or in a job of its own. It
submits an array of workers with sbatch, each of which takes trials from here over
the network, and keeps as many of them as are useful: new ones when some reach their
time limit, fewer when the budget nears its end. It needs no rights but those of
sbatch, squeue and scancel.

When Slurm ends a worker, because of its time limit, a preemption or scancel, the
worker hands its trials back, which costs no retry. If this command is interrupted, it
cancels its workers; the same command continues the study.

--state must be on a local disk. What the workers share is in --shared, which may be
on NFS.`

// slurmFlags are the flags of slurm.
type slurmFlags struct {
	runFlags
	job    slurm.Job
	time   string
	shared string
	listen string
	dryRun bool
	poll   time.Duration
}

func newSlurmCommand(a *app) *cobra.Command {
	var f slurmFlags
	c := &cobra.Command{
		Use:   "slurm STUDY.yaml",
		Short: "Run a study with workers in Slurm",
		Long:  slurmLong,
		Example: `  fantasia slurm study.yaml --workers 40 --time 4h --partition gpu --gres gpu:1
  fantasia slurm study.yaml --workers 10 --slots 4 --gres gpu:4 --sbatch=--account=vision
  fantasia slurm study.yaml --workers 40 --time 4h --dry-run`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error { return a.slurm(cmd, args[0], f) },
	}
	fl := c.Flags()
	fl.IntVar(&f.workers, "workers", 0, "largest number of workers (default: as many as the study's parallelism needs)")
	fl.IntVar(&f.job.Slots, "slots", 1, "number of trials that a worker runs at once")
	fl.StringVar(&f.time, "time", "", "time limit of a worker, such as 4h, or 2-00:00:00 as in Slurm (default: the partition's)")
	fl.StringVar(&f.job.Partition, "partition", "", "partition of the workers (default: Slurm's)")
	fl.StringVar(&f.job.Gres, "gres", "", "devices of a worker, such as gpu:1; divided among its slots")
	fl.IntVar(&f.job.CPUs, "cpus", 0, "cores of a worker (default: Slurm's)")
	fl.StringVar(&f.job.Memory, "mem", "", "memory of a worker, such as 16G (default: Slurm's)")
	fl.StringArrayVar(&f.job.Options, "sbatch", nil, "one more `option` of sbatch, such as --sbatch=--account=vision; may be repeated")
	fl.StringVar(&f.job.GPUs, "gpus", "auto", "GPUs to divide among the slots of a worker: auto, none, or a list such as 0-3 or amd:0,1")
	fl.DurationVar(&f.job.Drain, "drain", 25*time.Second, "time that running trials have to end when Slurm ends a worker; below Slurm's "+
		"KillWait")
	fl.StringVar(&f.listen, "listen", "", "`HOST:PORT` at which the nodes reach this machine; port 0 is a free one (default: its name, a "+
		"free port)")
	fl.StringVar(&f.state, "state", "", "directory of the study's state, on a local disk (default: .fantasia/NAME)")
	fl.StringVar(&f.shared, "shared", "", "directory that the nodes share, for the workers' files (default: .fantasia/NAME/slurm)")
	fl.BoolVar(&f.fresh, "new", false, "start over; the old state is kept under another name")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the script for sbatch and end")
	fl.DurationVar(&f.poll, "poll", 10*time.Second, "time between two looks at the queue")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log more to fantasia.log in the state directory")
	addOutput(c, &f.output)
	c.AddCommand(newSlurmWorkerCommand(a))
	return c
}

func (a *app) slurm(cmd *cobra.Command, file string, f slurmFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	s, err := readStudy(file)
	if err != nil {
		return err
	}
	fleet, err := f.fleet(s)
	if err != nil {
		return err
	}
	if f.dryRun {
		script, err := fleet.Job.Script(fleet.Workers)
		if err != nil {
			return usageError(cmd, err)
		}
		_, err = fmt.Fprint(a.Stdout, script)
		return err
	}
	if f.state == "" {
		f.state = display.DefaultState(s.Metadata.Name)
	}
	if err := slurm.CheckState(f.state); err != nil {
		return usageError(cmd, err)
	}
	if f.remote, err = fleet.Remote(f.listen); err != nil {
		return err
	}
	f.says, f.again = &fleet.Say, again(cmd, file)
	return a.run(cmd.Context(), file, f.runFlags, nil)
}

// again returns the words of the same command, without --new.
func again(cmd *cobra.Command, file string) []string {
	words := append(strings.Fields(cmd.CommandPath()), file)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Name != "new" {
				words = append(words, "--"+f.Name+"="+value)
			}
		}
	})
	return words
}

// check checks the flags, and completes them.
func (f *slurmFlags) check(cmd *cobra.Command) (err error) {
	switch {
	case f.workers < 0 || cmd.Flags().Changed("workers") && f.workers == 0:
		return usagef(cmd, "--workers is %d; want 1 or more", f.workers)
	case f.job.Slots < 1:
		return usagef(cmd, "--slots is %d; want 1 or more", f.job.Slots)
	case f.job.CPUs < 0:
		return usagef(cmd, "--cpus is %d; want 1 or more, or 0 for Slurm's default", f.job.CPUs)
	case f.job.Drain < time.Second:
		return usagef(cmd, "--drain is %s; want 1s or more", f.job.Drain)
	case f.poll < time.Second:
		return usagef(cmd, "--poll is %s; want 1s or more", f.poll)
	}
	if f.job.Time, err = slurm.ParseTime(f.time, f.job.Lead()); err != nil {
		return usagef(cmd, "--time is %q; %v", f.time, err)
	}
	return directory(cmd, f.state)
}

// fleet returns the workers of a study.
func (f *slurmFlags) fleet(s *study.Study) (*slurm.Fleet, error) {
	if f.shared == "" {
		f.shared = filepath.Join(display.DefaultState(s.Metadata.Name), "slurm")
	}
	shared, err := filepath.Abs(f.shared)
	if err != nil {
		return nil, fmt.Errorf("find the shared directory: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f.job.Study, f.job.Program, f.job.Shared = s.Metadata.Name, program, shared
	needed := (s.Spec.Parallelism + f.job.Slots - 1) / f.job.Slots
	if f.workers == 0 || f.workers > needed {
		f.workers = needed
	}
	return &slurm.Fleet{Job: f.job, Pool: s.Spec.Pool, Workers: f.workers, Poll: f.poll}, nil
}

func newSlurmWorkerCommand(a *app) *cobra.Command {
	o := workernode.NewOptions(a.Version, a.Stderr)
	w := &o.Worker
	var shared string
	c := &cobra.Command{
		Use:   "worker",
		Short: "Evaluate trials in a job of Slurm: what the script for sbatch runs",
		Long: `Takes trials from the coordinator of a running 'fantasia slurm', and evaluates them.
The script that 'fantasia slurm' submits runs this command. SIGTERM hands running
trials back, at no cost to their retries.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.Slots < 1 {
				return usagef(cmd, "--slots is %d; want 1 or more", w.Slots)
			}
			return slurm.Worker(cmd.Context(), shared, o, os.Getenv)
		},
	}
	fl := c.Flags()
	fl.StringVar(&shared, "shared", "", "directory that the nodes share, as this node sees it")
	fl.IntVar(&w.Slots, "slots", w.Slots, "number of trials to run at once")
	fl.StringVar(&w.GPUs, "gpus", w.GPUs, "GPUs to divide among the slots: auto, none, or a list such as 0-3 or amd:0,1")
	fl.DurationVar(&w.Drain, "drain", w.Drain, "time that running trials have to end after SIGTERM")
	if err := c.MarkFlagRequired("shared"); err != nil {
		panic(err) // the flag exists
	}
	return c
}
