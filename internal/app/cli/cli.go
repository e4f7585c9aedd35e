// Package cli is the command line of fantasia. Each command is a function newXCommand
// in a file of its own. New assembles them; Main runs them and turns errors into exit
// codes.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/internal/base/usage"
)

// Options are the program's arguments from its environment.
type Options struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Version is the version of the program, such as "0.1.0".
	Version string
	// Plugin makes the program kubectl fantasia.
	Plugin bool
}

// Main runs the command line and returns the program's exit code, one of the constants
// Exit…. It writes errors to Stderr and returns soon after ctx ends.
func Main(ctx context.Context, args []string, o Options) int {
	a := newApp(o)
	a.root.SetArgs(args)
	defer a.disconnect()
	ran, err := a.root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		// The command has not started: its name, flags or arguments are wrong.
		err = usageError(ran, err)
	}
	return a.exit(ctx, err)
}

// New returns the root command, for documentation and completion.
func New(o Options) *cobra.Command { return newApp(o).root }

// app is one run of the command line.
type app struct {
	Options
	root *cobra.Command
	// started is set once a command has started, so its flags and arguments are valid.
	started bool
	// disconnect ends what was opened to reach a server.
	disconnect func()
}

const rootLong = `Fantasia tunes expensive programs. It suggests parameters, runs your program with
them, reads the metric that it reports, and learns where to look next. It runs any
number of evaluations at once and never waits for the slowest.

Every flag can also be set in the environment: --server as FANTASIA_SERVER, and so
on. --server and the other flags of the server commands may also come before the
command: fantasia --server URL study list.

Exit codes: 0 success; 2 wrong command line or study file; 3 the study failed or
no trial completed; 4 another process serves the state directory; 130 interrupted;
1 any other error.`

const rootExample = `  fantasia check digits.yaml --try     # check the study file and the metric
  fantasia run digits.yaml             # tune it on this machine
  fantasia study create -f digits.yaml # tune it on a server's workers
  fantasia study watch digits`

func newApp(o Options) *app {
	o.Stdout, o.Stderr = visible(o.Stdout), visible(o.Stderr)
	a := &app{Options: o, disconnect: func() {}}
	if o.Plugin {
		a.root = a.plugin()
		return a
	}
	a.root = a.rootCommand(&cobra.Command{
		Use:     "fantasia",
		Short:   "Tune expensive programs on one machine or many",
		Long:    rootLong,
		Example: rootExample,
	})
	a.root.AddGroup(
		&cobra.Group{ID: groupLocal, Title: "On this machine:"},
		&cobra.Group{ID: groupServer, Title: "On a server:"},
	)
	a.add(groupLocal, newRunCommand(a), newSlurmCommand(a), newServeCommand(a), newDashboardCommand(a), newMCPCommand(a), newStateCommand(a),
		newInitCommand(a), newCheckCommand(a), newAskTellCommand(a), newBenchCommand(a), newAlgorithmsCommand(a), newImportCommand(a),
		newSchemaCommand(a))
	a.add(groupServer, newStudyCommand(a), newTrialCommand(a), newWorkerCommand(a), newQuotaCommand(a), newReportCommand(a),
		newBackupCommand(a), newRestoreCommand(a), newReplayCommand(a))
	a.add("", newVersionCommand(a))
	checkArguments(a.root)
	return a
}

// checkArguments makes the commands below c check their arguments by their usage, unless they check
// them otherwise.
func checkArguments(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Args == nil {
			sub.Args = arguments
		}
		checkArguments(sub)
	}
}

// rootCommand adds to a root command what every one has.
func (a *app) rootCommand(root *cobra.Command) *cobra.Command {
	usage.Root(root, a.Version, func(*pflag.FlagSet) error {
		a.started = true
		return nil
	})
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	return root
}

// The groups of commands in the help text.
const (
	groupLocal  = "local"
	groupServer = "server"
)

// add adds commands to a group of the root's help.
func (a *app) add(group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		a.root.AddCommand(c)
	}
}

// group makes a command that only holds others. Without a subcommand it shows its help;
// an unknown subcommand is an error.
func group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(commands...)
	return c
}
