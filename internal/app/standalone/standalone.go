// Package standalone runs a coordinator with its own etcd and NATS in one process. It
// serves the API on a port, and keeps everything in a state directory. Clients of the API
// evaluate the trials: workers cannot connect.
package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// closeTimeout limits each step of closing.
	closeTimeout = 20 * time.Second
	// startTimeout limits the start of etcd and NATS.
	startTimeout = 60 * time.Second
	name         = "standalone"
	// addressFile is the file in the state directory that holds the Address of the server
	// that has the directory open.
	addressFile = "server.json"
	// marker is a file in the directories that this package has made.
	marker = "served"
)

// ErrRun means that a state directory belongs to fantasia run.
var ErrRun = errors.New("it is the state of fantasia run")

// Options specify what to serve and where. State and Listen are required.
type Options struct {
	// State is the directory that keeps everything.
	State string
	// Listen is the address of the API. With port 0 the system chooses the port.
	Listen string
	// API is who may call, and the identity that callers see.
	API coordinatornode.APIAccess
	// Version is the software's, for telemetry.
	Version string
	// Level is the lowest level that is logged to State/fantasia.log.
	Level slog.Level
	// Ready is called once the API is served.
	Ready func(Address)
}

// Address says where a server is.
type Address struct {
	// URL is the address of the API and the dashboard.
	URL string `json:"url"`
	// State is the absolute path of the state directory.
	State string `json:"state"`
	// PID is the id of the server's process.
	PID int `json:"pid"`
}

// Served returns the address of the server that has a state directory open, as far as the
// directory tells: a server that was killed leaves its address behind.
func Served(state string) (Address, error) {
	var a Address
	content, err := os.ReadFile(filepath.Join(state, addressFile))
	if err == nil {
		err = json.Unmarshal(content, &a)
	}
	if err != nil {
		return a, fmt.Errorf("read the server's address: %w", err)
	}
	return a, nil
}

// Is reports whether a directory is the state of a server.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, marker))
	return err == nil
}

// Run serves until ctx ends. It fails with local.ErrInUse if another process has the state
// directory open.
func Run(ctx context.Context, o Options) (err error) {
	state, err := filepath.Abs(o.State)
	if err != nil {
		return fmt.Errorf("find the state directory: %w", err)
	}
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }() //nolint:contextcheck // ctx has ended by then
	tel, err := open(ctx, o, &stack)
	if err != nil {
		return err
	}
	n := &node{dir: o.State, log: tel.Logger(), stack: &stack}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return n.startEtcd(starting) })
	g.Go(n.startNATS)
	if err := g.Wait(); err != nil {
		return err
	}
	if err := n.listen(ctx, o.Listen); err != nil {
		return err
	}
	n.parts.Telemetry = tel

	defaults := coordinator.DefaultOptions()
	options := coordinatornode.Options{
		Name: name, Listen: o.Listen, API: o.API,
		LeaseTTL: local.SoleLease, WorkerLease: defaults.WorkerLease,
		Archive: filepath.Join(o.State, "archive"), Version: o.Version,
	}
	var unwritten error
	serving, stop := context.WithCancelCause(ctx)
	options.Ready = func(address string) {
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		a := Address{URL: address, State: state, PID: os.Getpid()}
		if unwritten = n.write(a); unwritten != nil {
			stop(unwritten)
			return
		}
		o.Ready(a)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case err, failed := <-n.etcd.Err():
			if failed {
				stop(fmt.Errorf("etcd: %w", err))
			}
		case <-serving.Done():
		}
	})
	err = coordinatornode.Serve(serving, options, n.parts, &stack)
	if cause := context.Cause(serving); ctx.Err() == nil && cause != nil {
		err = errors.Join(cause, err)
	}
	stop(nil)
	watching.Wait()
	return err
}

// open takes the state directory and opens its log.
func open(ctx context.Context, o Options, stack *lifecycle.Stack) (*telemetry.Telemetry, error) {
	if err := local.Lock(o.State, stack); err != nil {
		return nil, err
	}
	if states, err := local.States(o.State); err == nil && states[0] == o.State {
		if !Is(o.State) {
			return nil, fmt.Errorf("serve %s: %w; choose another directory with --state", o.State, ErrRun)
		}
	}
	if err := os.WriteFile(filepath.Join(o.State, marker), nil, 0o600); err != nil {
		return nil, fmt.Errorf("mark the state directory: %w", err)
	}
	if err := os.Remove(filepath.Join(o.State, addressFile)); err != nil && !errors.Is(err, os.ErrNotExist) { // of a server that was killed
		return nil, fmt.Errorf("remove the last server's address: %w", err)
	}
	return local.OpenTelemetry(ctx, o.State, o.Version, o.Level, stack)
}

// node holds what a server opens.
type node struct {
	dir   string
	log   *slog.Logger
	stack *lifecycle.Stack
	etcd  *embedded.Etcd
	parts coordinatornode.Parts
}

func (n *node) startEtcd(ctx context.Context) (err error) {
	n.etcd, n.parts.Etcd, err = local.StartEtcd(ctx, n.dir, n.log, n.stack)
	return err
}

func (n *node) startNATS() error {
	server, err := local.StartNATS(n.dir, n.log, n.stack)
	if err != nil {
		return err
	}
	n.parts.Bus, err = local.ConnectLeader(server, n.log, n.stack)
	return err
}

// listen opens the port, and the socket of the state directory.
func (n *node) listen(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	socket, err := local.Listen(n.dir)
	switch {
	case errors.Is(err, local.ErrLongPath):
		n.log.WarnContext(ctx, "commands with --state cannot query this server while it runs", "cause", err)
	case err != nil:
		return errors.Join(err, listener.Close())
	default:
		n.parts.Socket = socket
	}
	n.parts.Listener = listener
	return nil
}

// write stores the server's address, for those who find the directory locked, until the
// server ends.
func (n *node) write(a Address) error {
	content, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode the address: %w", err)
	}
	path := filepath.Join(n.dir, addressFile)
	if err := renameio.WriteFile(path, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the address: %w", err)
	}
	n.stack.PushClose("the address", func() error { return os.Remove(path) })
	return nil
}
