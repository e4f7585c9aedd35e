// Package workercli is the command line of the program worker, which evaluates trials: it
// takes assignments of its pool, runs their program, and reports the results.
package workercli

import (
	"context"
	"fmt"
	"io"

	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/fantasia-hpo/fantasia/worker/command"
	"github.com/spf13/cobra"
)

// Main runs the program with the arguments until ctx ends, and returns its exit code.
// Logs and errors go to stderr.
func Main(ctx context.Context, args []string, version string, stderr io.Writer) int {
	return usage.Main(ctx, New(version, stderr), args, stderr, "worker: ")
}

// New returns the root command, also for documentation and completion.
func New(version string, stderr io.Writer) *cobra.Command {
	o := workernode.NewOptions(version, stderr)
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
		Args: cobra.ArbitraryArgs,
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
	workernode.Flags(f, o)
	f.StringVar(&w.GPUs, "gpus", w.GPUs, "GPUs to divide among the slots: auto, none, or a list such as 0-3 or amd:0,1")
	f.BoolVar(&w.AllowStudyCommands, "allow-study-commands", false, "run the commands that studies contain")
	f.StringSliceVar(&w.PassEnv, "pass-env", nil, "pass these `variables` of the worker's environment to programs too: NAME, PREFIX_* or * "+
		"(default: only what programs need to run, without credentials)")
	f.Var(workernode.Size(&w.KeepTrials), "keep-trials", "how much ended trials may leave in --state before the oldest are removed; 0 "+
		"keeps all")
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(sidecarCommand(version, stderr), jobSidecarCommand(stderr), installCommand())
	return usage.Root(cmd, version, workernode.CheckFlags)
}
