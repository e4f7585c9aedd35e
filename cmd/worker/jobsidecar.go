package main

import (
	"errors"
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
		Short:  "Take the reports of a program beside it in the pod of a Job",
		Long:   "What `kubeworker --sidecar` adds to pods; there is no need to run it oneself.",
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
	f.StringVar(&o.Dir, "dir", "", "folder that the program shares")
	f.StringVar(&o.Listen, "http", o.Listen, "where the program may speak HTTP")
	f.StringVar(&o.Message, "message", o.Message, "file of the termination message")
	f.StringVar(&attempt, "attempt-json", "", "the attempt")
	f.BoolVar(&prepare, "prepare", false, "make the file for reports, and end")
	return cmd
}

// kubejobCommand says where a command went that was here once.
func kubejobCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubejob",
		Hidden:             true,
		DisableFlagParsing: true,
		PersistentPreRunE:  func(*cobra.Command, []string) error { return nil },
		RunE: func(*cobra.Command, []string) error {
			return errors.New("worker kubejob is a program of its own now: run kubeworker, with the same flags")
		},
	}
}
