package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/fantasia-hpo/fantasia/internal/base/dirlock"
)

const (
	// quota is the usual limit of etcd's database, in bytes.
	quota = 2 << 30
	// DefaultHistory is long enough for a watcher that was disconnected briefly, and
	// short enough to keep the database small under a thousand writes a second.
	DefaultHistory = 30 * time.Second
)

const (
	etcdName   = "fantasia"
	etcdSocket = "etcd.sock"
	// nowhere is the peer address of a cluster of one. It is only recorded for the
	// member; nothing listens on it.
	nowhere = "http://127.0.0.1:1"
	// A single member has no peers: short ticks only make it elect itself sooner.
	tickMs, electionMs = 10, 100
	// snapshotEvery is the number of entries after which the write-ahead log is
	// replayed from a new snapshot; followersKeep entries stay in memory for followers,
	// of which there are none.
	snapshotEvery, followersKeep = 2000, 100
	// segmentBytes is the size to which etcd preallocates files of its write-ahead log,
	// two at the start; its default is 64 MB. So a new state directory has about a megabyte.
	segmentBytes = 512 << 10
)

// setSegmentBytes sets etcd's variable before a server reads it.
var setSegmentBytes = sync.OnceFunc(func() { wal.SegmentSizeBytes = segmentBytes })

// EtcdOptions configure an embedded etcd. Dir is required.
type EtcdOptions struct {
	// Dir is the directory of the data. It is created if necessary.
	Dir string
	// Logger receives etcd's warnings and errors while it serves, and everything else
	// as debug. Nil discards all.
	Logger *slog.Logger
	// QuotaBytes limits the database; 0 means 2 GiB.
	QuotaBytes int64
	// Valid returns why a key cannot have a value; nil means that any key can have any value. It
	// is called for each key before etcd starts.
	Valid func(key, value []byte) error
	// History is the time for which old versions of keys are kept, and the interval of
	// compactions; 0 means DefaultHistory.
	History time.Duration
}

// Etcd is an etcd server in this process, a cluster of one. Its methods are
// safe for concurrent use.
type Etcd struct {
	server  *embed.Etcd
	release func() error
	dir     string
	runtime string
	log     *zap.Logger
	serving atomic.Bool
	close   func() error
}

// StartEtcd checks the files, starts etcd and waits until it serves or ctx ends. It defragments a database of which
// much is free. The error wraps
// dirlock.ErrInUse if Dir is in use, and an *etcdfile.Damage if a file is damaged.
func StartEtcd(ctx context.Context, o EtcdOptions) (*Etcd, error) {
	if o.Dir == "" {
		return nil, errors.New("start etcd: Dir is empty; want a directory for its data")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	release, err := dirlock.Take(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	e := &Etcd{release: release, dir: o.Dir}
	e.close = sync.OnceValue(e.shutdown)
	e.log = zapLogger(o.Logger, &e.serving, o.Dir)
	if err := e.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start etcd in %s: %w", o.Dir, err), e.Close())
	}
	return e, nil
}

func (e *Etcd) start(ctx context.Context, o EtcdOptions) error {
	err := CheckEtcd(o.Dir, o.Valid)
	if err == nil {
		err = forgetContents(o.Dir)
	}
	if err != nil {
		return err
	}
	sweep(o.Dir, etcdSocket)
	if e.runtime, err = runtimeDir(etcdSocket); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, socketNote), []byte(e.runtime), 0o600); err != nil {
		return fmt.Errorf("record the socket's directory: %w", err)
	}
	cfg, err := e.config(o)
	if err != nil {
		return err
	}
	setSegmentBytes()
	if e.server, err = embed.StartEtcd(cfg); err != nil {
		return err
	}
	select {
	case <-e.server.Server.ReadyNotify():
		before, after, err := e.defragment(ctx, cfg.QuotaBackendBytes)
		switch {
		case err != nil: // it serves all the same
			o.Logger.WarnContext(ctx, "etcd's database keeps its free space", "error", err)
		case before > 0:
			o.Logger.InfoContext(ctx, "defragmented etcd's database", "before", before, "after", after)
		}
		e.serving.Store(true)
		return nil
	case err, ok := <-e.server.Err():
		if !ok || err == nil {
			err = errors.New("etcd stopped")
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait until etcd is ready: %w", context.Cause(ctx))
	}
}

func (e *Etcd) config(o EtcdOptions) (*embed.Config, error) {
	peer, err := url.Parse(nowhere)
	if err != nil {
		return nil, fmt.Errorf("parse the peer address: %w", err)
	}
	client := url.URL{Scheme: "unix", Path: filepath.Join(e.runtime, etcdSocket)}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = etcdName, DataDir(o.Dir)
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = nil, []url.URL{*peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.InitialCluster = etcdName + "=" + nowhere
	cfg.TickMs, cfg.ElectionMs = tickMs, electionMs
	cfg.QuotaBackendBytes = cmp.Or(o.QuotaBytes, quota)
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = cmp.Or(o.History, DefaultHistory).String()
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries, cfg.MaxWalFiles = snapshotEvery, followersKeep, 1
	cfg.EnableGRPCGateway = false
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(e.log)
	return cfg, nil
}

// Endpoint returns the address of the server: unix:// and the path of its socket.
func (e *Etcd) Endpoint() string { return endpoint(e.runtime) }

// Client returns a new client of the server. The caller closes it.
func (e *Etcd) Client() (*clientv3.Client, error) {
	c, err := connect(e.runtime, e.log)
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded etcd: %w", err)
	}
	return c, nil
}

// connect returns a client of the server whose socket is in a runtime directory.
func connect(runtime string, log *zap.Logger) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint(runtime)}, DialTimeout: 5 * time.Second, Logger: log})
}

func endpoint(runtime string) string { return "unix://" + filepath.Join(runtime, etcdSocket) }

// Err delivers an error if the server fails while it serves, and is closed with it.
func (e *Etcd) Err() <-chan error { return e.server.Err() }

// Close stops the server and waits for it, at most 15 s. Later calls return the first
// call's result.
func (e *Etcd) Close() error { return e.close() }

func (e *Etcd) shutdown() error {
	e.serving.Store(false)
	var errs []error
	if e.server != nil {
		if err := bounded("etcd", e.server.Close); err != nil {
			return err
		}
		noteContents(e.dir)
	}
	if e.runtime != "" {
		errs = append(errs, os.RemoveAll(e.runtime))
	}
	return errors.Join(append(errs, e.release())...)
}

// RunningEtcd returns a client of the server that another process of this user has
// started in dir. The caller closes it. It does not wait for a connection.
func RunningEtcd(dir string) (*clientv3.Client, error) {
	runtime, err := os.ReadFile(filepath.Join(dir, socketNote))
	if err != nil {
		return nil, fmt.Errorf("find the running etcd's socket: %w", err)
	}
	c, err := connect(string(runtime), zap.NewNop())
	if err != nil {
		return nil, fmt.Errorf("connect to the running etcd: %w", err)
	}
	return c, nil
}

// defragLeast is the size from which on a database is worth the seconds of writing it anew.
const defragLeast = 32 << 20

// defragment writes the database anew, if more than half of its file is free: etcd uses free pages again, but never
// gives them back, and counts them against its quota. It refuses everything meanwhile, for seconds with a large
// database, so this MUST be done before anybody leads. Nothing is lost if the process is killed: etcd replaces
// the file by a finished copy, and deletes unfinished ones. It returns the sizes of the file; both are 0 if nothing was done.
func (e *Etcd) defragment(ctx context.Context, quota int64) (before, after int64, err error) {
	s := e.server.Server
	b := s.Backend()
	if before = b.Size(); before < defragLeast || b.SizeInUse() > before/2 {
		return 0, 0, nil
	}
	if err := b.Defrag(); err != nil {
		return 0, 0, fmt.Errorf("defragment the database: %w", err)
	}
	if after = b.Size(); after >= quota {
		return before, after, nil
	}
	// etcd that was full stays so until somebody says that there is room.
	full := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE,
		MemberID: uint64(s.MemberID())}
	if _, err := s.Alarm(ctx, full); err != nil {
		return before, after, fmt.Errorf("end etcd's alarm that it is full: %w", err)
	}
	return before, after, nil
}
