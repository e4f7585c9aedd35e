package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/internal/envflag"
)

// releaseTimeout bounds what precedes an uninstall.
const releaseTimeout = 2 * time.Minute

func releaseCommand() *cobra.Command {
	var namespaces []string
	cmd := &cobra.Command{
		Use:   "release-studies",
		Short: "Take the finalizers off all Study resources, before an uninstall",
		Long: `Takes the finalizer fantasia.dev/study off the Study resources of all namespaces:
it would keep them from being deleted once no coordinator runs. Coordinators that
run leave these resources alone from then on; one that is started later takes
them up again. What the ledger has of their studies stays there.`,
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return envflag.Apply(cmd) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := kube.Config()
			if err != nil {
				return err
			}
			config.Timeout = releaseTimeout
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("make a client of Kubernetes: %w", err)
			}
			released, err := kube.Release(cmd.Context(), client, namespaces, time.Now())
			fmt.Fprintf(cmd.OutOrStdout(), "%d studies released\n", released)
			return err
		},
	}
	namespaceFlag(cmd.Flags(), &namespaces)
	return cmd
}

func namespaceFlag(f *pflag.FlagSet, to *[]string) {
	f.StringSliceVar(to, "study-namespaces", nil, "namespaces whose Study resources are run (default: all)")
}
