package workercli

import (
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
)

func jobSidecarCommand(stderr io.Writer) *cobra.Command {
	var attempt string
	var prepare bool
	o := jobsidecar.Options{Listen: jobsidecar.Address, Message: "/dev/termination-log", Log: os.Stdout}
	cmd := &cobra.Command{
		Use:    "job-sidecar --dir DIR",
		Short:  "Take a program's reports in the pod of its Job",
		Long:   "kubeworker --sidecar adds this to pods; it is not meant to be run by hand.",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if prepare {
				return jobsidecar.Prepare(o.Dir)
			}
			parsed, err := jobsidecar.ParseAttempt(attempt)
			if err != nil {
				return err
			}
			o.Attempt = *parsed
			o.Logger = slog.New(slog.NewTextHandler(stderr, nil))
			return jobsidecar.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "directory shared with the program")
	f.StringVar(&o.Events, "events", "", "directory of the program's event files")
	f.StringVar(&o.Listen, "http", o.Listen, "address at which the program may report over HTTP")
	f.StringVar(&o.Message, "message", o.Message, "termination message file")
	f.StringVar(&attempt, "attempt-json", "", "the attempt, as JSON")
	f.BoolVar(&prepare, "prepare", false, "create the file for reports, and exit")
	return cmd
}
