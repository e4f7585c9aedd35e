package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/dirlock"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/etcdfile"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// OpenTelemetry returns telemetry that logs to fantasia.log in a state directory. The stack
// closes it.
func OpenTelemetry(ctx context.Context, state, version string, level slog.Level, stack *lifecycle.Stack) (*telemetry.Telemetry, error) {
	logs, err := openLog(filepath.Join(state, "fantasia.log"), maxLog)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	stack.PushClose("the log", logs.Close)
	tel, err := telemetry.Setup(ctx, telemetry.Options{Service: "fantasia", Version: version, Logs: logs, Level: level})
	if err != nil {
		return nil, fmt.Errorf("set up telemetry: %w", err)
	}
	stack.Push("telemetry", tel.Shutdown)
	return tel, nil
}

// SoleLease is the time to live of the leader's lease in the process that has the lock of a state
// directory. Nobody else can lead there, so a disk or a processor that stalls for some seconds
// need not end the leader's term. StartEtcd revokes what a dead process has left.
const SoleLease = time.Minute

// StartEtcd starts the etcd of a state directory, whose lock the caller holds, and returns
// a client of it. Nobody leads there. The stack closes both.
func StartEtcd(ctx context.Context, state string, log *slog.Logger, stack *lifecycle.Stack) (*embedded.Etcd, *clientv3.Client, error) {
	server, err := embedded.StartEtcd(ctx, embedded.EtcdOptions{Dir: filepath.Join(state, etcdDir), Logger: log, Valid: ledger.Valid})
	if damage, ok := errors.AsType[*etcdfile.Damage](err); ok {
		return nil, nil, &Damaged{State: state, Cause: damage}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start etcd: %w", err)
	}
	stack.PushClose("etcd", server.Close)
	client, err := server.Client()
	if err != nil {
		return nil, nil, fmt.Errorf("connect to etcd: %w", err)
	}
	stack.PushClose("the connection to etcd", client.Close)
	// The lock of the state directory shows that the previous leader is dead.
	if err := election.Clear(ctx, client, ledger.New(client, ledger.Options{}).LeaderKey()); err != nil {
		return nil, nil, fmt.Errorf("revoke the last leader's lease: %w", err)
	}
	return server, client, nil
}

// StartNATS starts the NATS of a state directory, whose lock the caller holds. The stack
// closes it. A damaged store is set aside, and what it held is evaluated again.
func StartNATS(state string, log *slog.Logger, stack *lifecycle.Stack) (*embedded.NATS, error) {
	return startNATS(state, embedded.NATSOptions{Logger: log}, stack)
}

// startNATS is StartNATS with other options; Dir is set here.
func startNATS(state string, o embedded.NATSOptions, stack *lifecycle.Stack) (*embedded.NATS, error) {
	o.Dir = filepath.Join(state, "nats")
	server, err := embedded.StartNATS(o)
	if errors.Is(err, embedded.ErrStore) {
		old, errAside := asideNATS(state, o.Dir)
		if errAside != nil {
			return nil, errors.Join(err, errAside)
		}
		o.Logger.Warn("NATS cannot read its files: starting with new ones", "old", old, telemetry.LogError, err)
		server, err = embedded.StartNATS(o)
	}
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	stack.PushClose("NATS", server.Close)
	return server, nil
}

// claimFiles are the worker's files about claims, which are claims in NATS. With a NATS that knows no
// claims, the results of these attempts would wait for them.
var claimFiles = []string{"claims", "spool"}

// asideNATS renames the directory of NATS, and moves the worker's claims and unsent results into it: their
// trials are evaluated again.
func asideNATS(state, dir string) (old string, err error) {
	if old, err = Aside(dir); err != nil {
		return "", err
	}
	for _, name := range claimFiles {
		err := os.Rename(filepath.Join(state, "worker", name), filepath.Join(old, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("set the worker's claims aside: %w", err)
		}
	}
	return old, nil
}

// ConnectLeader connects a coordinator's bus to the NATS of a state directory. The stack closes
// it. A nil log discards what the bus logs.
func ConnectLeader(server *embedded.NATS, log *slog.Logger, stack *lifecycle.Stack, options ...nats.Option) (messaging.Leader, error) {
	return connectBus(server, "coordinator", stack, func(c *nats.Conn) (messaging.Leader, error) {
		return natsbus.NewLeader(c, natsbus.LeaderOptions{Logger: log})
	}, options...)
}

// connectBus connects the bus of that name's program.
func connectBus[B interface{ Close() error }](server *embedded.NATS, name string, stack *lifecycle.Stack,
	bind func(*nats.Conn) (B, error), options ...nats.Option) (bus B, err error) {
	c, err := server.Connect(append(natsbus.ConnectOptions(name), options...)...)
	if err != nil {
		return bus, fmt.Errorf("connect to NATS: %w", err)
	}
	stack.PushClose("the "+name+"'s connection to NATS", func() error { c.Close(); return nil })
	if bus, err = bind(c); err != nil {
		return bus, fmt.Errorf("set up the %s's bus: %w", name, err)
	}
	stack.PushClose("the "+name+"'s bus", bus.Close)
	return bus, nil
}

// ErrInUse means that another process uses the state directory.
var ErrInUse = dirlock.ErrInUse

// Lock takes a state directory for this process, creating it if necessary, until the stack
// is closed. It fails with ErrInUse if another process has it.
func Lock(dir string, stack *lifecycle.Stack) error {
	unlock, err := dirlock.Take(dir)
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("%w; wait for it, or choose another with --state", err)
	}
	if err == nil {
		stack.PushClose("the state directory's lock", unlock)
	}
	return err
}
