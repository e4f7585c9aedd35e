// Package coordinatornode runs a coordinator as a program: connected to etcd and NATS,
// with its API on a port.
package coordinatornode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/api/openapi"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/app/backend"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/exchange/katib"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const closeTimeout = 10 * time.Second

// Options are the options of a coordinator's command line.
type Options struct {
	// Etcd and NATS are the addresses of their servers.
	Etcd, NATS []string
	// EtcdAccess and NATSAccess are the coordinator's identities to them.
	EtcdAccess EtcdAccess
	NATSAccess access.NATS
	// API is the coordinator's identity to callers of its API, and the callers it
	// accepts.
	API APIAccess
	// Listen is the address of the API, Advertise the address at which other replicas
	// reach it (default: Listen, if that names a host).
	Listen, Advertise string
	// KatibListen is the address of Katib's Suggestion service; empty if it is not served.
	KatibListen string
	Name        string
	LeaseTTL    time.Duration
	WorkerLease time.Duration
	// Replicas is the number of NATS servers that store each stream: 1, or 3 in a
	// cluster.
	Replicas int
	// Archive is the directory of archived studies; empty for none.
	Archive string
	// Duties, if not nil, returns duties that the leader has besides those of every coordinator, such
	// as those in a Kubernetes cluster.
	Duties  func(replica string, etcd *clientv3.Client, log *slog.Logger) ([]coordinator.Duty, error)
	Version string
	Logs    io.Writer
	Level   slog.Level
	// Ready, if not nil, is called with the API's address once it is served.
	Ready func(address string)
}

// Run serves until ctx ends, and then resigns at once if it is the leader.
func Run(ctx context.Context, o Options) (err error) {
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }()
	tel, err := telemetry.Setup(ctx, telemetry.Options{Service: "fantasia-coordinator", Version: o.Version, Instance: o.Name, Logs: o.Logs,
		Level: o.Level})
	if err != nil {
		return fmt.Errorf("set up telemetry: %w", err)
	}
	stack.Push("telemetry", tel.Shutdown)
	identity, err := o.EtcdAccess.Config(o.Etcd, tel.Logger())
	if err != nil {
		return err
	}
	etcd, err := ledger.Connect(o.Etcd, identity)
	if err != nil {
		return err
	}
	stack.PushClose("the connection to etcd", etcd.Close)
	bus, err := connectNATS(ctx, o, tel, &stack)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	parts := Parts{Etcd: etcd, Bus: bus, Listener: listener, Telemetry: tel}
	if o.KatibListen != "" {
		if parts.Katib, err = net.Listen("tcp", o.KatibListen); err != nil {
			return errors.Join(fmt.Errorf("listen for Katib: %w", err), listener.Close())
		}
	}
	return Serve(ctx, o, parts, &stack)
}

// Parts are what a replica has opened before it serves.
type Parts struct {
	Etcd *clientv3.Client
	Bus  messaging.Leader
	// Listener is where the API and the pages are served.
	Listener net.Listener
	// Socket, if not nil, serves the same to this machine's user. No browser reaches it,
	// so requests for every host are accepted.
	Socket net.Listener
	// Katib, if not nil, is where Katib's Suggestion service is served.
	Katib     net.Listener
	Telemetry *telemetry.Telemetry
}

// Serve serves with the parts of a replica until ctx ends, and then resigns at once if it
// is the leader. It closes the listeners; what else it opens is closed with the stack. Of
// the options it ignores those that say how to connect, and Listen.
func Serve(ctx context.Context, o Options, p Parts, stack *lifecycle.Stack) (err error) {
	tel := p.Telemetry
	serving := false
	defer func() {
		if !serving {
			err = errors.Join(err, p.close())
		}
	}()
	options := inject.Coordinator(coordinator.DefaultOptions())
	options.Name, options.Advertise = o.Name, advertised(o.Advertise, p.Listener.Addr().String(), o.API.Secure())
	options.Etcd, options.Bus = p.Etcd, p.Bus
	options.LeaseTTL, options.WorkerLease = o.LeaseTTL, o.WorkerLease
	options.Logger, options.Tracer, options.Meter = tel.Logger().With("replica", o.Name), tel.Tracer(), tel.Meter()
	options.Exports = tel.Exports()
	if o.Archive != "" {
		if options.Archive, err = archive.Open(o.Archive, o.Version); err != nil {
			return err
		}
	}
	if o.Duties != nil {
		if options.Duties, err = o.Duties(o.Name, p.Etcd, options.Logger); err != nil {
			return err
		}
	}
	c, err := coordinator.New(options)
	if err != nil {
		return err
	}
	g, running := errgroup.WithContext(ctx)
	served := backend.New(c, ledger.New(p.Etcd, ledger.Options{}))
	api := server.Options{Leader: served.Leader, Draining: running.Done(), Logger: tel.Logger(), Tracer: tel.TracerProvider(),
		Meter: tel.MeterProvider()}
	if err := o.API.Options(&api, tel.Logger()); err != nil {
		return err
	}
	metered := api.Quotas.Meter(served)
	path, handler, err := server.New(metered, api)
	if err != nil {
		return fmt.Errorf("set up the API: %w", err)
	}
	if err := api.Quotas.Observe(tel.Meter(), served); err != nil {
		return fmt.Errorf("set up the quotas' metrics: %w", err)
	}
	mux := httpserve.Mux(httpserve.Probes{Ready: ready(c, p.Bus), Metrics: tel.MetricsHandler()})
	mux.Handle(path, handler)
	mux.Handle(openapi.Pattern, openapi.Handler())
	shown := dashboard.Options{API: handler, Tokens: api.Tokens, Draining: running.Done(), Logger: tel.Logger()}
	pages := dashboard.New(metered, shown) //nolint:contextcheck // it ends with Close
	stack.PushClose("the dashboard", pages.Close)
	mux.Handle(dashboard.Path, pages)
	mux.Handle("GET /{$}", http.RedirectHandler(dashboard.Path, http.StatusSeeOther))
	guarded, err := o.API.Guard(mux, tel.Logger(), o.Listen, options.Advertise)
	if err != nil {
		return err
	}
	tel.Logger().Info("serving", "api", options.Advertise, "replica", o.Name)
	if o.Ready != nil {
		o.Ready(options.Advertise)
	}
	serving = true
	limited := server.NewAddresses(server.AddressLimits{}, tel.Logger(), time.Now).Limit(guarded)
	strangers := telemetry.Sparse(tel.Logger(), time.Now)
	g.Go(func() error {
		return httpserve.Serve(running, o.API.Listener(httpserve.Bound(p.Listener, httpserve.Connections{}, server.Network, strangers)),
			limited, strangers)
	})
	if p.Socket != nil {
		g.Go(func() error { return httpserve.Serve(running, p.Socket, mux, strangers) })
	}
	if p.Katib != nil {
		g.Go(func() error { return katib.Serve(running, p.Katib, tel.Logger()) })
	}
	g.Go(func() error { return c.Run(running) })
	return g.Wait()
}

// close closes the listeners.
func (p Parts) close() error {
	err := p.Listener.Close()
	for _, l := range []net.Listener{p.Socket, p.Katib} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// connectNATS returns a leader's bus.
func connectNATS(ctx context.Context, o Options, tel *telemetry.Telemetry, stack *lifecycle.Stack) (messaging.Leader, error) {
	conn, err := o.NATSAccess.Connect(ctx, o.NATS, tel.Logger(), stack, natsbus.ConnectOptions("coordinator-"+o.Name)...)
	if err != nil {
		return nil, err
	}
	bus, err := natsbus.NewLeader(conn, natsbus.LeaderOptions{Replicas: o.Replicas, Logger: telemetry.Sparse(tel.Logger(), time.Now)})
	if err != nil {
		return nil, fmt.Errorf("set up the coordinator's bus: %w", err)
	}
	stack.PushClose("the coordinator's bus", bus.Close)
	return bus, nil
}

// ready returns why a replica cannot serve: it needs both etcd and NATS.
func ready(c *coordinator.Coordinator, bus messaging.Leader) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := c.Obstacle(ctx); err != nil {
			return err
		}
		if _, _, err := c.Leader(ctx); err != nil {
			return fmt.Errorf("no leader: %w", err)
		}
		if err := bus.Healthy(ctx); err != nil {
			return fmt.Errorf("no answer from NATS: %w", err)
		}
		return nil
	}
}

// advertised returns the address for the leader's key. It has a host, and the scheme if
// that is https.
func advertised(given, listening string, secure bool) string {
	address := given
	if address == "" {
		address = listening
		if host, port, err := net.SplitHostPort(listening); err == nil {
			if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
				address = net.JoinHostPort("localhost", port)
			}
		}
	}
	if secure && !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return address
}
