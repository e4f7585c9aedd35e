// Command worker evaluates trials: it takes assignments of its pool, runs their
// program, and reports the results.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
	"github.com/fantasia-hpo/fantasia/internal/envflag"
	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var version = "dev"

func main() { os.Exit(run(os.Stderr)) }

func run(stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := newCommand(stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "worker:", strings.TrimPrefix(err.Error(), "worker: "))
		return 1
	}
	return 0
}

func newCommand(stderr io.Writer) *cobra.Command {
	o := newOptions(stderr)
	w := &o.Worker
	cmd := &cobra.Command{
		Use:   "worker --nats URL,… [flags] [-- COMMAND …]",
		Short: "Evaluate the trials of a pool",
		Long: `Takes trials of a pool and evaluates them. It runs COMMAND, in which ${name},
${args} and the like stand for a trial's parameters. Without COMMAND it runs the
study's own command, which --allow-study-commands must permit. SIGTERM hands
running trials back to run elsewhere, at no cost to their retries. Every flag can
also be set in the environment: --allow-study-commands as
FANTASIA_ALLOW_STUDY_COMMANDS, and so on.`,
		Example: `  worker --nats nats://localhost:4222 --slots 4 -- python train.py '${args}'
  worker --nats nats://localhost:4222 --pool gpus --gpus auto --allow-study-commands`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := envflag.Apply(cmd); err != nil {
				return err
			}
			return check(cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return fmt.Errorf("argument %q: the command to run comes after --", args[0])
			}
			w.Command = args
			if len(args) == 0 && !w.AllowStudyCommands {
				return command.ErrNotAllowed
			}
			return workernode.Run(cmd.Context(), *o)
		},
	}
	f := cmd.Flags()
	sharedFlags(f, o)
	f.StringVar(&w.GPUs, "gpus", w.GPUs, "GPUs to divide among the slots: auto, none, or a list such as 0,1")
	f.BoolVar(&w.AllowStudyCommands, "allow-study-commands", false, "run the commands that studies contain")
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(sidecarCommand(stderr), kubejobCommand(stderr), jobSidecarCommand(stderr), installCommand())
	return cmd
}

// check checks the flags that all workers share.
func check(f *pflag.FlagSet) error {
	if n, err := f.GetInt("slots"); err == nil && n < 1 {
		return fmt.Errorf("--slots is %d; want 1 or more", n)
	}
	if dir, err := f.GetString("state"); err == nil {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("--state is %q, which is not a directory", dir)
		}
	}
	return nil
}

func newOptions(stderr io.Writer) *workernode.Options {
	return &workernode.Options{Version: version, Logs: stderr, Worker: worker.DefaultOptions()}
}

// sharedFlags adds the flags that all workers share.
func sharedFlags(f *pflag.FlagSet, o *workernode.Options) {
	w := &o.Worker
	f.StringSliceVar(&o.NATS, "nats", []string{"nats://localhost:4222"}, "addresses of NATS")
	o.Access.Flags(f)
	f.StringVar(&w.Name, "name", "", "name of the worker (default: random, kept in the state directory)")
	f.StringVar(&w.Pool, "pool", w.Pool, "pool whose trials to take")
	f.IntVar(&w.Slots, "slots", w.Slots, "number of trials to run at once")
	f.StringVar(&w.StateDir, "state", w.StateDir, "directory of logs and of results that are not yet acknowledged; not shared with other workers")
	f.StringVar(&w.Checkpoints, "checkpoints", w.Checkpoints, "directory of checkpoints, best on shared storage (default: in --state)")
	f.DurationVar(&w.Drain, "drain", w.Drain, "time that running trials have to end after SIGTERM")
	f.DurationVar(&w.HeartbeatInterval, "heartbeat", w.HeartbeatInterval, "time between heartbeats; must be well below the coordinator's --worker-lease")
	f.StringVar(&o.Listen, "listen", "", "address of /metrics, /healthz and /readyz (default: not served)")
	f.BoolVar(&o.PodDeletionCost, "pod-deletion-cost", false, "set the deletion cost of this worker's pod, named by POD_NAMESPACE and POD_NAME")
	f.BoolFuncP("verbose", "v", "log more", func(text string) error {
		verbose, err := strconv.ParseBool(text)
		if verbose {
			o.Level = slog.LevelDebug
		}
		return err
	})
}
