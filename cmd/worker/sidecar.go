package main

import (
	"io"

	"github.com/fantasia-hpo/fantasia/internal/attach"
	"github.com/spf13/cobra"
)

func sidecarCommand(stderr io.Writer) *cobra.Command {
	o := newOptions(stderr)
	cmd := &cobra.Command{
		Use:   "sidecar [flags]",
		Short: "Serve trials to training code over HTTP",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return attach.Run(cmd.Context(), *o) },
	}
	sharedFlags(cmd.Flags(), o)
	return cmd
}
