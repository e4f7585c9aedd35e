package workercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/sidecar"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// handBackTimeout limits the request of `sidecar hand-back`.
const handBackTimeout = 10 * time.Second

func sidecarCommand(version string, stderr io.Writer) *cobra.Command {
	o := workernode.NewOptions(version, stderr)
	address, timeout := sidecar.DefaultAddress, sidecar.DefaultClientTimeout
	var hosts []string
	cmd := &cobra.Command{
		Use:   "sidecar --nats URL,… [flags]",
		Short: "Serve trials over HTTP to training code that has its own loop",
		Long: `Serves the trials of a pool over HTTP on this machine. Training code asks for them
with POST /v1/next, POST /v1/report, GET /v1/should-stop and POST /v1/complete. The
sidecar takes a trial only while training code waits for one. SIGTERM or hand-back
tells the training code to stop and hands its trials back, at no cost to their
retries.`,
		Example: `  worker sidecar --nats nats://localhost:4222 --pool gpus
  worker sidecar hand-back`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSidecar(cmd.Context(), *o, address, hosts, timeout)
		},
	}
	f := cmd.Flags()
	workernode.Flags(f, o)
	f.Lookup("checkpoints").Usage = "directory of checkpoints, best on shared storage (default: none)"
	f.DurationVar(&timeout, "client-timeout", timeout, "time after which an attempt fails if training code is silent; 0 is no limit")
	f.StringSliceVar(&hosts, "allowed-hosts", nil, "`names` by which training code calls the sidecar, besides localhost and IP addresses")
	cmd.PersistentFlags().StringVar(&address, "http", address, "address for training code: HOST:PORT or unix:PATH")
	cmd.AddCommand(&cobra.Command{
		Use:   "hand-back",
		Short: "Ask the sidecar on this machine to hand its trials back",
		Long: `Tells the training code to stop, and hands its trials back. Use it in the preStop
hook of a Kubernetes sidecar container, which gets SIGTERM only after the training
container has ended. The sidecar gives out no more trials until it is restarted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), handBackTimeout)
			defer cancel()
			open, err := sidecar.HandBack(ctx, address)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "handing back %d trials\n", open)
			}
			return err
		},
	})
	return cmd
}

// runSidecar works until ctx ends. After a hand-back it keeps answering
// its clients until then.
func runSidecar(ctx context.Context, o workernode.Options, address string, hosts []string, timeout time.Duration) error {
	listener, err := sidecar.Listen(ctx, address)
	if err != nil {
		return err
	}
	working, leave := context.WithCancel(ctx)
	defer leave()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	var g errgroup.Group
	served := false
	o.Setup = func(_ context.Context, w *worker.Options) error {
		s, err := sidecar.New(sidecar.Options{
			Slots: w.Slots, Checkpoints: w.Checkpoints, ClientTimeout: timeout, Leave: leave, AllowedHosts: hosts, Logger: w.Logger,
		})
		if err != nil {
			return err
		}
		w.NewEvaluator, w.Runs = s.Evaluator, messaging.RunsSidecar
		w.NoLogs = "worker " + w.Name + " gives trials to training code over HTTP, which keeps its output itself"
		served = true
		context.AfterFunc(ctx, s.Terminate)
		g.Go(func() error {
			defer stopServing() // if it fails, the worker ends as well
			defer leave()
			return s.Serve(serving, listener)
		})
		return nil
	}
	err = workernode.Run(working, o)
	if !served {
		return errors.Join(err, closed(listener))
	}
	if err == nil { // it was told to leave, for example by a hand-back
		select {
		case <-ctx.Done():
		case <-serving.Done():
		}
	}
	stopServing()
	return errors.Join(err, g.Wait())
}

func closed(l net.Listener) error {
	if err := l.Close(); err != nil {
		return fmt.Errorf("stop listening: %w", err)
	}
	return nil
}
