// Package cli is the command line of fantasia. Each command is a function
// newXCommand in a file of its own; New puts them together, Main runs them and
// turns errors into exit codes.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/envflag"
)

// Options are what the command line is run with.
type Options struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Version is the program's own, as in "0.1.0".
	Version string
}

// Main runs the command line and returns the program's exit code; see the
// constants Exit…. Errors go to Stderr. It ends soon after ctx does.
func Main(ctx context.Context, args []string, o Options) int {
	a := newApp(o)
	a.root.SetArgs(args)
	ran, err := a.root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		// The command has not begun: its name, flags or arguments are wrong.
		err = usageError(ran, err)
	}
	return a.exit(ctx, err)
}

// New makes the command line's root, for documentation and completion.
func New(o Options) *cobra.Command { return newApp(o).root }

// app is one run of the command line.
type app struct {
	Options
	root *cobra.Command
	// started says that a command has begun: its flags and arguments are right.
	started bool
}

const rootLong = `Fantasia tunes expensive programs over many machines without waiting for
stragglers: it suggests parameters, runs your program with them, reads the
metric that it reports, and learns where to look next, with any number of
evaluations running at once.

Every flag can also be given by a variable of the environment: --server by
FANTASIA_SERVER, and so on. --server and the other flags of the commands for a
server may also come before the command: fantasia --server URL study list.

Exit codes: 0 all is well; 2 the command line or a study file is wrong; 3 the
study failed, or nothing completed; 130 interrupted; 1 anything else.`

const rootExample = `  fantasia check digits.yaml --try     # is the study file right, and is my metric read?
  fantasia run digits.yaml             # tune it on this machine
  fantasia study create -f digits.yaml # tune it on a server's workers
  fantasia study watch digits`

func newApp(o Options) *app {
	a := &app{Options: o}
	a.root = &cobra.Command{
		Use:           "fantasia",
		Short:         "Tune expensive programs, on one machine or on many",
		Long:          rootLong,
		Example:       rootExample,
		Version:       o.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := envflag.Apply(cmd); err != nil {
				return err
			}
			a.started = true
			return nil
		},
	}
	a.root.SetIn(o.Stdin)
	a.root.SetOut(o.Stdout)
	a.root.SetErr(o.Stderr)
	a.root.AddGroup(
		&cobra.Group{ID: groupLocal, Title: "On this machine:"},
		&cobra.Group{ID: groupServer, Title: "On a server:"},
	)
	a.add(groupLocal, newRunCommand(a), newCheckCommand(a), newAskTellCommand(a), newBenchCommand(a), newImportCommand(a), newSchemaCommand(a))
	a.add(groupServer, newStudyCommand(a), newTrialCommand(a), newWorkerCommand(a))
	a.add("", newVersionCommand(a))
	return a
}

// The groups of commands in the help.
const (
	groupLocal  = "local"
	groupServer = "server"
)

// add adds commands to the root, in a group of its help.
func (a *app) add(group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		a.root.AddCommand(c)
	}
}

// group is a command that only holds others: by itself it shows its help, and
// anything that is none of them is an error.
func group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(commands...)
	return c
}
