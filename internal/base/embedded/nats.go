package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/dirlock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// syncInterval is the interval at which JetStream's files are synced to disk. What a
	// power failure can lose exists elsewhere: results in the workers' spools until etcd
	// has them.
	syncInterval = time.Second
	// maxPayload is the largest size of a message in bytes; the streams' own limit is
	// lower.
	maxPayload = 1 << 20
	// maxStore is more than the bounds of all streams together, which are what limits them.
	maxStore = 1 << 40
	// natsReady limits how long the server may take to accept connections.
	natsReady = 30 * time.Second
)

// NATSOptions configure an embedded NATS server. Dir is required.
type NATSOptions struct {
	// Dir is the directory of JetStream's data. It is created if necessary.
	Dir string
	// Logger receives the server's warnings and errors, and everything else as debug.
	// Nil discards all.
	Logger *slog.Logger
	// SyncAlways syncs each write before it is acknowledged.
	SyncAlways bool
	// Listen is the address at which other processes reach the server, as host:port. With port
	// 0 the system chooses a port. Empty opens none.
	Listen string
	// Accounts is the accounts block of nats-server's configuration: who may connect, also in
	// this process. Empty lets everybody do everything.
	Accounts string
}

// NATS is a NATS server with JetStream in this process. Its methods are safe for concurrent use.
type NATS struct {
	server  *server.Server
	release func() error
	close   func() error
}

// ErrStore means that NATS cannot read a stream that it has stored. It would go on without that stream.
var ErrStore = errors.New("a file of the store is damaged")

// StartNATS starts NATS and waits until it accepts connections. The error wraps
// dirlock.ErrInUse if Dir is in use, and ErrStore if a file of a stream is damaged.
func StartNATS(o NATSOptions) (*NATS, error) {
	if o.Dir == "" {
		return nil, errors.New("start NATS: Dir is empty; want a directory for its data")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	options, err := o.server()
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	release, err := dirlock.Take(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start NATS in %s: %w", o.Dir, err), release())
	}
	return started(s, o, release)
}

// server returns the server's own options.
func (o *NATSOptions) server() (*server.Options, error) {
	s := &server.Options{
		ServerName:   "fantasia",
		DontListen:   true,
		JetStream:    true,
		StoreDir:     filepath.Join(o.Dir, "data"),
		SyncInterval: syncInterval,
		SyncAlways:   o.SyncAlways,
		MaxPayload:   maxPayload,
		// Otherwise JetStream would want three quarters more free space than the streams may
		// ever take, and refuse to make them on a smaller disk.
		JetStreamMaxStore: maxStore,
		NoSigs:            true,
		NoLog:             true,
	}
	if o.Accounts != "" {
		if err := s.ProcessConfigString(o.Accounts); err != nil {
			return nil, fmt.Errorf("read the accounts: %w", err)
		}
	}
	if o.Listen == "" {
		return s, nil
	}
	host, text, err := net.SplitHostPort(o.Listen)
	port, errPort := strconv.ParseUint(text, 10, 16)
	if err = errors.Join(err, errPort); err != nil {
		return nil, fmt.Errorf("listen on %q; want HOST:PORT: %w", o.Listen, err)
	}
	s.Host, s.Port, s.DontListen = host, int(port), false
	if port == 0 {
		s.Port = server.RANDOM_PORT
	}
	return s, nil
}

// started starts a server and waits until it accepts connections.
func started(s *server.Server, o NATSOptions, release func() error) (*NATS, error) {
	n := &NATS{server: s, release: release}
	n.close = sync.OnceValue(n.shutdown)
	log := &natsLog{logger: o.Logger.With("component", "nats")}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if why := log.fatal.Load(); why != nil { // it will never be ready
		return nil, errors.Join(fmt.Errorf("start NATS in %s: %s", o.Dir, *why), n.Close())
	}
	if why := log.store.Load(); why != nil {
		return nil, errors.Join(fmt.Errorf("start NATS in %s: %w: %s", o.Dir, ErrStore, *why), n.Close())
	}
	if !s.ReadyForConnections(natsReady) {
		return nil, errors.Join(fmt.Errorf("start NATS in %s: not ready after %s", o.Dir, natsReady), n.Close())
	}
	return n, nil
}

// Port returns the port at which other processes reach the server; 0 if there is none.
func (n *NATS) Port() int {
	if at, ok := n.server.Addr().(*net.TCPAddr); ok {
		return at.Port
	}
	return 0
}

// Connect returns a new connection inside the process. The caller closes it.
func (n *NATS) Connect(opts ...nats.Option) (*nats.Conn, error) {
	c, err := nats.Connect(nats.DefaultURL, append(opts[:len(opts):len(opts)], nats.InProcessServer(n.server))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded NATS: %w", err)
	}
	return c, nil
}

// Close stops the server, which syncs its files, and waits for it, at most 15 s. Later
// calls return the first call's result.
func (n *NATS) Close() error { return n.close() }

func (n *NATS) shutdown() error {
	err := bounded("NATS", func() { n.server.Shutdown(); n.server.WaitForShutdown() })
	if err != nil {
		return err
	}
	return n.release()
}

// natsLog forwards the server's log to slog. It records why the server did not start,
// which the server reports nowhere else.
type natsLog struct {
	logger *slog.Logger
	fatal  atomic.Pointer[string]
	store  atomic.Pointer[string] // which file of a stream it could not read, when it started
}

var _ server.Logger = (*natsLog)(nil)

// Noticef logs what the server reports of its life, for debugging.
func (l *natsLog) Noticef(format string, v ...any) { l.logger.Debug(fmt.Sprintf(format, v...)) }

// Warnf logs a warning. The server tells in no other way that it has left out a stream.
func (l *natsLog) Warnf(format string, v ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, v...))
	for _, said := range []string{"metafile", "stream checksum", "consumer checksum", "Error recreating stream", "Error adding consumer"} {
		if strings.Contains(text, said) {
			l.store.Store(&text)
		}
	}
	l.logger.Warn(text)
}

// Errorf logs an error.
func (l *natsLog) Errorf(format string, v ...any) { l.logger.Error(fmt.Sprintf(format, v...)) }

// Fatalf records why the server does not run, for the error; it does not exit.
func (l *natsLog) Fatalf(format string, v ...any) {
	why := fmt.Sprintf(format, v...)
	l.fatal.Store(&why)
	l.logger.Debug(why)
}

// Debugf logs details.
func (l *natsLog) Debugf(format string, v ...any) { l.logger.Debug(fmt.Sprintf(format, v...)) }

// Tracef logs nothing: traces contain every message.
func (l *natsLog) Tracef(string, ...any) {}
