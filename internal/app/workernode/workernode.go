// Package workernode runs a worker as a program: connected to NATS, with its probes on
// a port if requested.
package workernode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker"
)

const closeTimeout = 10 * time.Second

// Options are the options of a worker's command line.
type Options struct {
	// Worker are the worker's own options; Run sets its bus and telemetry.
	Worker worker.Options
	// Setup, if not nil, completes the worker's options, for example NewEvaluator, once
	// its name, bus and telemetry are set.
	Setup func(ctx context.Context, w *worker.Options) error
	// NATS are the addresses of NATS servers, Access is the worker's identity to them.
	NATS   []string
	Access access.NATS
	// Listen is the address of probes and metrics; empty for none.
	Listen  string
	Version string
	Logs    io.Writer
	Level   slog.Level
}

// Run evaluates trials until ctx ends, and hands running ones back.
func Run(ctx context.Context, o Options) (err error) {
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }()
	w := o.Worker
	if w.Name == "" {
		if w.Name, err = worker.Name(w.StateDir); err != nil {
			return err
		}
	}
	w.Name = messaging.WorkerName(w.Pool, w.Name) // NATS distinguishes pools by it
	tel, err := telemetry.Setup(ctx, telemetry.Options{Service: "fantasia-worker", Version: o.Version, Instance: w.Name, Logs: o.Logs,
		Level: o.Level})
	if err != nil {
		return fmt.Errorf("set up telemetry: %w", err)
	}
	stack.Push("telemetry", tel.Shutdown)
	conn, err := o.Access.Connect(ctx, o.NATS, tel.Logger(), &stack, natsbus.WorkerConnectOptions(w.Pool, w.Name)...)
	if err != nil {
		return err
	}
	bus, err := natsbus.NewWorker(conn, natsbus.WorkerOptions{Name: w.Name, Pool: w.Pool, Logger: tel.Logger()})
	if err != nil {
		return fmt.Errorf("set up the worker's bus: %w", err)
	}
	stack.PushClose("the worker's bus", bus.Close)
	w.Bus, w.Logger, w.Tracer, w.Meter = bus, tel.Logger(), tel.Tracer(), tel.Meter()
	w.Software, w.Site = "fantasia "+o.Version, siteOf(os.Getenv)
	if o.Setup != nil {
		if err := o.Setup(ctx, &w); err != nil {
			return err
		}
	}
	evaluator, err := worker.New(w)
	if err != nil {
		return err
	}
	g, probing := errgroup.WithContext(ctx)
	ends, end := context.WithCancel(probing)
	g.Go(func() error {
		defer end()
		return evaluator.Run(probing)
	})
	if o.Listen != "" {
		g.Go(func() error { return probe(ends, o.Listen, conn, tel) })
	}
	return g.Wait()
}

// probe serves /healthz, /readyz and /metrics.
func probe(ctx context.Context, listen string, conn *nats.Conn, tel *telemetry.Telemetry) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	ready := func(context.Context) error {
		if !conn.IsConnected() {
			return errors.New("NATS is not connected")
		}
		return nil
	}
	mux := httpserve.Mux(httpserve.Probes{Ready: ready, Metrics: tel.MetricsHandler()})
	return httpserve.Serve(ctx, listener, mux, telemetry.Sparse(tel.Logger(), time.Now))
}

// SlurmJob returns the id of the job of Slurm in which a process with these variables runs, as squeue shows
// it; empty outside of Slurm.
func SlurmJob(getenv func(string) string) string {
	if job, index := getenv("SLURM_ARRAY_JOB_ID"), getenv("SLURM_ARRAY_TASK_ID"); job != "" && index != "" {
		return job + "_" + index
	}
	return getenv("SLURM_JOB_ID")
}

// siteOf returns where Slurm runs this process.
func siteOf(getenv func(string) string) messaging.Site {
	job := SlurmJob(getenv)
	if job == "" {
		return messaging.Site{}
	}
	return messaging.Site{Job: job, Node: getenv("SLURMD_NODENAME")}
}
