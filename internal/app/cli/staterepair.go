package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
)

const stateLong = `Looks after the state directories of fantasia run and serve, such as .fantasia/digits,
and the state files of Go programs.

A failing disk can damage them. Each start checks them, and an error names the file
that is damaged.`

const stateCheckLong = `Checks the files of a state directory, or the state file of a Go program: the checksum
of each record, and that the trials of each study fit together. It says what is damaged
and which trials that concerns, and the exit code is then 1. A process that uses the
state must end first.`

const stateRepairLong = `Writes what can be read of a damaged state directory into a new one, or of a Go program's
state file into a new file, and lists what is lost. It changes nothing in the damaged
one. A backup is better, if there is one: see fantasia restore.

A program goes on with the new file. A trial whose records are all lost is cancelled there,
and another one takes its place.

Of a directory, studies that lost no trial continue as usual. For each other study,
NEW/lost/STUDY has the study file and a table of the trials whose records are sound. To
go on with them, create the study and import the table:

  fantasia study create -f NEW/lost/STUDY/study.json
  fantasia study import-trials STUDY NEW/lost/STUDY/trials.jsonl`

func newStateCommand(a *app) *cobra.Command {
	return group(&cobra.Command{Use: "state", Short: "Check and repair state directories and files", Long: stateLong},
		newStateCheckCommand(a), newStateRepairCommand(a))
}

func newStateCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check STATE",
		Short: "Check the files and records of a state",
		Long:  stateCheckLong,
		Example: `  fantasia state check .fantasia/digits
  fantasia state check batches.study`,
		RunE: func(cmd *cobra.Command, args []string) error {
			contents, err := local.CheckState(cmd.Context(), args[0])
			if err != nil {
				return stateError(err)
			}
			return say(a.Stdout, "%s is sound: %v", args[0], contents)
		},
	}
}

func newStateRepairCommand(a *app) *cobra.Command {
	var into string
	c := &cobra.Command{
		Use:   "repair STATE",
		Short: "Save what can be read of a damaged state",
		Long:  stateRepairLong,
		Example: `  fantasia state repair .fantasia/digits --into .fantasia/digits.repaired
  fantasia state repair batches.study --into repaired.study`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if into == "" {
				return usagef(cmd, "--into is missing; want the new directory, or the new file")
			}
			r, err := local.Repair(cmd.Context(), args[0], into, a.Version)
			if err != nil {
				return stateError(err)
			}
			return a.sayRepaired(r, into)
		},
	}
	c.Flags().StringVar(&into, "into", "", "new `PATH` for what can be saved")
	return c
}

// stateError gives an error of a state directory its exit code.
func stateError(err error) error {
	switch {
	case errors.Is(err, local.ErrNoState):
		return exitWith(ExitUsage, err)
	case errors.Is(err, local.ErrInUse):
		return exitWith(ExitInUse, err)
	default:
		return err
	}
}

// sayRepaired says what a repair has saved, and what is lost.
func (a *app) sayRepaired(r *local.Repaired, into string) error {
	lines := each.Of(r.Problems, error.Error)
	for _, name := range r.Whole {
		lines = append(lines, fmt.Sprintf("saved: study %s, with all its trials", name))
	}
	for _, dir := range r.Parts {
		lines = append(lines, "saved in part: the study file and the trials in "+dir)
	}
	switch {
	case r.File != "":
		lines = append(lines, "saved: all sound records, in "+r.File)
	case r.Table != "":
		lines = append(lines, "saved: a table of the trials, for fantasia study import-trials, in "+r.Table)
	}
	for _, what := range r.Lost {
		lines = append(lines, "lost: "+what)
	}
	if len(r.Lost) == 0 {
		lines = append(lines, "nothing that was recorded is known to be lost")
	}
	switch {
	case r.File != "":
		lines = append(lines, "to go on, open "+into+" with the program, as its Options.State")
	case len(r.Whole) > 0:
		lines = append(lines, "to go on, use --state "+into)
	}
	return say(a.Stdout, "%s", strings.Join(lines, "\n"))
}
