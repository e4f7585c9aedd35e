// Command coordinator is a replica of Fantasia's coordinator: it campaigns for
// the leadership, leads studies while it has it, and serves the API.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/envflag"
	"github.com/spf13/cobra"
)

var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "coordinator:", strings.TrimPrefix(err.Error(), "coordinator: "))
		return 1
	}
	return 0
}

func command() *cobra.Command {
	defaults := coordinator.DefaultOptions()
	host, _ := os.Hostname()
	o := coordinatornode.Options{Version: version, Logs: os.Stderr}
	var verbose bool
	cmd := &cobra.Command{
		Use:   "coordinator --etcd URL,… --nats URL,…",
		Short: "Lead studies: suggest trials, publish them to workers, fold their results",
		Long: `A replica of the coordinator. Run one or more against the same etcd and NATS:
one leads, the others stand by and answer reads, and one of them takes over when
the leader dies. Every flag can also be set in the environment: --lease-ttl as
FANTASIA_LEASE_TTL, and so on. Traces go where the OTEL_* variables say.`,
		Example: `  coordinator --etcd http://localhost:2379 --nats nats://localhost:4222
  fantasia --server http://localhost:8080 study create -f study.yaml`,
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE:       func(cmd *cobra.Command, _ []string) error { return envflag.Apply(cmd) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if verbose {
				o.Level = slog.LevelDebug
			}
			if !election.ValidTTL(o.LeaseTTL) {
				return fmt.Errorf("--lease-ttl is %v; want whole seconds, at least %v", o.LeaseTTL, election.MinTTL)
			}
			return coordinatornode.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Etcd, "etcd", []string{"http://localhost:2379"}, "addresses of etcd")
	f.StringSliceVar(&o.NATS, "nats", []string{"nats://localhost:4222"}, "addresses of NATS")
	o.EtcdAccess.Flags(f)
	o.NATSAccess.Flags(f)
	o.API.Flags(f)
	f.StringVar(&o.Listen, "listen", ":8080", "where to serve the API, /metrics, /healthz and /readyz")
	f.StringVar(&o.Advertise, "advertise", "", "how other replicas reach this one (default: the listening address)")
	f.StringVar(&o.Name, "name", host, "this replica's name")
	f.DurationVar(&o.LeaseTTL, "lease-ttl", defaults.LeaseTTL, fmt.Sprintf("how long a dead leader is waited for, in whole seconds, at least %v", election.MinTTL))
	f.DurationVar(&o.WorkerLease, "worker-lease", defaults.WorkerLease, "how long a silent worker keeps its trials")
	f.IntVar(&o.Replicas, "replicas", 1, "NATS servers that keep each stream: 1, or 3 in a cluster")
	f.BoolVar(&o.Kubernetes.Studies, "studies", false, "run the Study resources of the Kubernetes cluster that KUBECONFIG names or that this runs in")
	namespaceFlag(f, &o.Kubernetes.StudyNamespaces)
	f.StringVar(&o.Kubernetes.StudyPools, "study-pools", "", "YAML `file` of the pools that the studies of each namespace may use; none without one")
	f.StringVar(&o.Kubernetes.Scale, "scale", "", "YAML `file` of the Deployments and StatefulSets of pools, whose scale the leader sets; none without one")
	f.StringSliceVar(&o.Kubernetes.PodDeletionCost, "pod-deletion-cost", nil, "`pools` whose pods get a deletion cost; workers are named after their pods in POD_NAMESPACE")
	f.BoolVarP(&verbose, "verbose", "v", false, "log more")
	cmd.AddCommand(releaseCommand(), natsConfigCommand())
	return cmd
}
