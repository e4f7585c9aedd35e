// Package kubeworkercli is the command line of the program kubeworker, which evaluates
// trials in a Kubernetes cluster: each by a Job, or by another resource that a template makes.
package kubeworkercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/internal/app/kubeforward"
	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/kubejob"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// clusterQPS and clusterBurst limit the calls of the cluster's API, which has its own
// protection against overload.
const (
	clusterQPS   = 50
	clusterBurst = 100
)

// Main runs the program with the arguments until ctx ends, and returns its exit code.
// Logs and errors go to stderr.
func Main(ctx context.Context, args []string, version string, stderr io.Writer) int {
	return usage.Main(ctx, New(version, stderr), args, stderr, "worker: ")
}

// New returns the root command, also for documentation and completion.
func New(version string, stderr io.Writer) *cobra.Command {
	o, k := workernode.NewOptions(version, stderr), kubejob.DefaultOptions()
	o.Worker.KeepTrials = kubejob.MaxLogs
	var files kubeFiles
	cmd := &cobra.Command{
		Use:   "kubeworker --nats URL,… [--template FILE] [--study-jobs FILE] [flags]",
		Short: "Evaluate each trial by a Kubernetes Job or another resource",
		Long: `Takes trials of a pool and evaluates each by a Job, or by another resource of the
template. The program's container gets the same environment variables as a program
of a worker; in the template ${name} and ${args} stand for parameters. Reports are
read from the container's log and, with --sidecar, also from a file and over HTTP.
With --study-jobs it also creates the Jobs that studies bring, in their own namespaces.
In mode stream, a slot's Job stays and evaluates one trial after another.
It uses the cluster that it runs in, or the one of --kubeconfig. Every flag can also
be set in the environment: --start-timeout as FANTASIA_START_TIMEOUT, and so on.`,
		Example: `  kubeworker --nats nats://nats:4222 --template job.yaml --slots 20
  kubeworker --template pytorchjob.yaml --container pytorch --namespace training`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.readInto(&k); err != nil {
				return err
			}
			k.Environ = os.Environ()
			return runKubejob(cmd.Context(), *o, k, files.kubeconfig)
		},
	}
	f := cmd.Flags()
	workernode.Flags(f, o)
	kubejobFlags(f, &k)
	f.Var(workernode.Size(&o.Worker.KeepTrials), "keep-trials", "how much the logs of ended trials may take in --state before the oldest "+
		"are removed; 0 keeps all")
	f.StringVar(&files.template, "template", "", "YAML file of the manifest")
	f.StringVar(&files.studyJobs, "study-jobs", "", "YAML file of the Jobs that each namespace's studies may bring (default: none)")
	f.StringVar(&files.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's service account, $KUBECONFIG, or ~/.kube/config)")
	cmd.CompletionOptions.DisableDefaultCmd = true
	return usage.Root(cmd, version, workernode.CheckFlags)
}

// kubeFiles are the files that the flags name.
type kubeFiles struct{ template, studyJobs, kubeconfig string }

// readInto reads the template and the policies.
func (f *kubeFiles) readInto(k *kubejob.Options) (err error) {
	if f.template == "" && f.studyJobs == "" {
		return errors.New("--template is missing; want the YAML file of a Job or another resource, or --study-jobs to create the Jobs that " +
			"studies bring")
	}
	if f.template != "" {
		if k.Template, err = os.ReadFile(f.template); err != nil {
			return fmt.Errorf("--template: %w", err)
		}
	}
	if f.studyJobs != "" {
		if k.StudyJobs, err = jobpolicy.Read(f.studyJobs); err != nil {
			return fmt.Errorf("--study-jobs: %w", err)
		}
	}
	return nil
}

func kubejobFlags(f *pflag.FlagSet, k *kubejob.Options) {
	f.StringVar(&k.Namespace, "namespace", "", "namespace of the resources, unless the template sets it (default: the pod's or kubeconfig's)")
	f.StringVar(&k.Container, "container", "", "container of the program (default: the first of the pod)")
	f.StringVar(&k.Reporter, "reporter", "", "path of the template's pod template whose program reports, such as "+
		"spec.pytorchReplicaSpecs.Master.template (default: all with the container)")
	f.StringVar(&k.Success, "success", "", "CEL condition of success, over self and status (default: by the template's kind)")
	f.StringVar(&k.Failure, "failure", "", "CEL condition of failure, over self and status (default: by the template's kind)")
	f.StringVar(&k.Owner, "owner", "", "owner of the resources, as TYPE.VERSION.GROUP/NAME, such as deployments.v1.apps/fantasia-pool")
	f.StringVar(&k.Sidecar, "sidecar", "", "image of worker, for a sidecar that takes reports from a file and over HTTP (default: no sidecar)")
	f.StringVar(&k.SidecarPolicy, "sidecar-pull-policy", k.SidecarPolicy, "imagePullPolicy of the sidecar")
	f.BoolVar(&k.Keep, "keep", false, "on SIGTERM, leave Jobs running for this worker's next process instead of handing them back")
	f.BoolVar(&k.FailMemoryKills, "fail-memory-kills", false, "fail a trial if a process of its container was killed for memory, also if "+
		"the container ended with exit code 0")
	f.DurationVar(&k.TTL, "ttl", k.TTL, "time that an ended Job is kept")
	f.DurationVar(&k.StartTimeout, "start-timeout", k.StartTimeout, "time that a pod may take to get a node, and then to start, before its "+
		"attempt fails")
	f.DurationVar(&k.QueueTimeout, "queue-timeout", k.QueueTimeout, "time that a suspended resource may wait for its queue before its "+
		"attempt fails")
	f.DurationVar(&k.StreamIdle, "stream-idle", k.StreamIdle, "time that a Job of mode stream stays without a trial")
}

// runKubejob evaluates trials on the cluster until ctx ends.
func runKubejob(ctx context.Context, o workernode.Options, k kubejob.Options, kubeconfig string) error {
	if err := reach(&k, kubeconfig); err != nil {
		return err
	}
	var runner *kubejob.Runner
	o.Setup = func(ctx context.Context, w *worker.Options) error {
		k.Worker, k.Logger, k.StateDir = w.Name, w.Logger, w.StateDir
		var err error
		if runner, err = kubejob.New(ctx, k); err != nil {
			return err
		}
		w.NewEvaluator, w.Keeper, w.Runs = runner.Evaluator, runner, messaging.RunsJobs
		w.StudyJobs, w.JobsOnly = len(k.StudyJobs) > 0, len(k.Template) == 0
		return nil
	}
	err := workernode.Run(ctx, o)
	if runner != nil {
		err = errors.Join(err, runner.Close())
	}
	return err
}

// reach creates the clients of the cluster.
func reach(k *kubejob.Options, kubeconfig string) error {
	config, namespace, err := (&kubeforward.Cluster{Kubeconfig: kubeconfig, Namespace: k.Namespace}).Load()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = clusterQPS, clusterBurst
	k.Namespace = namespace
	if k.Core, err = kubecore.New(config); err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	if k.Client, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	k.Attach = kubejob.AttachTo(config, k.Core)
	return nil
}
