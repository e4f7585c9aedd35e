package coordinatorcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator/kube"
)

// releaseTimeout limits the step before an uninstall.
const releaseTimeout = 2 * time.Minute

func releaseCommand() *cobra.Command {
	var namespaces []string
	cmd := &cobra.Command{
		Use:   "release-studies",
		Short: "Remove the finalizers of all Study resources before an uninstall",
		Long: `Removes the finalizer fantasia.dev/study from the Study resources of all namespaces.
Without a running coordinator it would keep them from being deleted. Running
coordinators ignore these resources from then on; one that starts later manages
them again. The ledger keeps their studies.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := kube.Config()
			if err != nil {
				return err
			}
			config.Timeout = releaseTimeout
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("create a Kubernetes client: %w", err)
			}
			released, err := kube.Release(cmd.Context(), client, namespaces, time.Now())
			fmt.Fprintf(cmd.OutOrStdout(), "finalizer removed from %d studies\n", released)
			return err
		},
	}
	namespaceFlag(cmd.Flags(), &namespaces)
	return cmd
}

func namespaceFlag(f *pflag.FlagSet, to *[]string) {
	f.StringSliceVar(to, "study-namespaces", nil, "namespaces of the Study resources that are run (default: all)")
}
