// Package coordinatorcli is the command line of the program coordinator, a replica of
// Fantasia's coordinator. It campaigns for leadership, leads the studies while it is the
// leader, and serves the API.
package coordinatorcli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/fantasia-hpo/fantasia/internal/exchange/katib"
)

// Main runs the program with the arguments until ctx ends, and returns its exit code.
// Logs and errors go to stderr.
func Main(ctx context.Context, args []string, version string, stderr io.Writer) int {
	return usage.Main(ctx, New(version, stderr), args, stderr, "coordinator: ")
}

// New returns the root command, also for documentation and completion.
func New(version string, stderr io.Writer) *cobra.Command {
	defaults := coordinator.DefaultOptions()
	host, _ := os.Hostname()
	var k kubernetes
	o := coordinatornode.Options{Version: version, Logs: stderr, Duties: k.duties}
	var verbose bool
	cmd := &cobra.Command{
		Use:   "coordinator --etcd URL,… --nats URL,…",
		Short: "Run a replica of the coordinator, which leads studies and serves the API",
		Long: `Runs a replica of the coordinator. Run one or more against the same etcd and NATS:
one leads; the others stand by, answer reads, and take over if the leader dies.
Every flag can also be set in the environment: --lease-ttl as FANTASIA_LEASE_TTL,
and so on. The OTEL_* variables say where traces go.

Everybody who reaches --listen may create studies; with --tokens or --oidc-issuer, only
callers with a token may. An address that other machines reach needs one of both, or
--insecure to let everybody in.`,
		Example: `  coordinator --etcd http://localhost:2379 --nats nats://localhost:4222
  fantasia --server http://localhost:8080 study create -f study.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if verbose {
				o.Level = slog.LevelDebug
			}
			if !election.ValidTTL(o.LeaseTTL) {
				return fmt.Errorf("--lease-ttl is %v; want whole seconds, at least %v", o.LeaseTTL, election.MinTTL)
			}
			if err := o.API.CheckListen(o.Listen); err != nil {
				return err
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
	f.StringVar(&o.Listen, "listen", "localhost:8080", "where to serve the API, /metrics, /healthz and /readyz")
	f.StringVar(&o.Advertise, "advertise", "", "address at which other replicas reach this one (default: --listen)")
	f.StringVar(&o.KatibListen, "katib-listen", "", "where to serve Katib's Suggestion service, such as "+katib.Address+" (default: nowhere)")
	f.StringVar(&o.Name, "name", host, "name of this replica")
	f.DurationVar(&o.LeaseTTL, "lease-ttl", defaults.LeaseTTL, fmt.Sprintf("time until a dead leader is replaced, in whole seconds, at "+
		"least %v", election.MinTTL))
	f.DurationVar(&o.WorkerLease, "worker-lease", defaults.WorkerLease, "time after which the trials of a silent worker are lost")
	f.IntVar(&o.Replicas, "replicas", 1, "number of NATS servers that store each stream: 1, or 3 in a cluster")
	f.StringVar(&o.Archive, "archive", "", "`directory` of archived studies, which all replicas share (default: none)")
	f.BoolVar(&k.studies, "studies", false, "run Study resources of Kubernetes, in the cluster of KUBECONFIG or of this pod")
	f.StringSliceVar(&k.studyNamespaces, "study-namespaces", nil, "namespaces of the Study resources that are run (default: all)")
	f.StringVar(&k.studyPools, "study-pools", "", "YAML `file` of the pools that each namespace's studies may use (default: none)")
	f.StringVar(&k.studyJobs, "study-jobs", "", "YAML `file` of the Jobs that each namespace's studies may bring (default: none)")
	f.StringVar(&k.scale, "scale", "", "YAML `file` of the Deployments and StatefulSets that the leader scales (default: none)")
	f.StringVar(&k.lease, "kubernetes-lease", "", "`name` of the Lease that shows who leads, in POD_NAMESPACE (default: none)")
	f.StringSliceVar(&k.podDeletionCost, "pod-deletion-cost", nil, "`pools` whose pods get a deletion cost; each worker has the name of "+
		"its pod")
	f.BoolVarP(&verbose, "verbose", "v", false, "log more")
	cmd.AddCommand(natsConfigCommand(), natsReloadCommand(), katibCommand(version, stderr))
	return usage.Root(cmd, version, nil)
}
