// Package coordinator runs the studies of a shard. A coordinator campaigns for
// leadership. The leader takes over the shard, passes the messages of workers,
// optimisers and users to the engines, commits what the engines decide, and carries
// out their effects. Every replica answers reads from the ledger; writes go to the
// leader.
//
// loop.go is where to begin: it says what a leader does in which order, and what must be durable
// before what. The parts of a leader are packages of their own. Package studies holds the engines,
// and commit what the next transaction stores. What comes from workers goes through incoming, and
// what goes to them through publish; lease knows who is alive. Package suggest calls the optimisers,
// calls answers clients that wait for trials, and disk watches etcd.
package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/deadletter"
	"github.com/fantasia-hpo/fantasia/coordinator/disk"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/incoming"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
	"github.com/fantasia-hpo/fantasia/coordinator/suggest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// ErrNotLeader says that this replica does not lead the shard. Send writes to the
// leader, whose address Leader returns.
var ErrNotLeader = study.NewError(study.ErrUnavailable, "this replica is not the leader")

// Options configure a coordinator. Etcd, Bus and NewOptimizer are required; the
// others have defaults.
type Options struct {
	// Name is this replica's name in logs and in the leader's key.
	Name string
	// Advertise is the address at which other replicas reach this one's API. Leave
	// it empty if there are no others.
	Advertise string
	Shard     string
	Etcd      *clientv3.Client
	// Ledger says how the ledger in Etcd is used; its Shard is the one above.
	Ledger ledger.Options
	Bus    messaging.Leader
	// NewOptimizer makes the optimiser of a study.
	NewOptimizer func(study.Algorithm) (optimizer.Optimizer, error)
	// NewFallback makes what suggests a study's points when its optimiser is too slow.
	// It must be an optimizer.Blind. Nil means that slots wait for the optimiser.
	NewFallback func() optimizer.Optimizer

	// LeaseTTL is the time to live of the leader's lease. WorkerLease is how long a
	// worker may be silent before its attempts are lost.
	LeaseTTL, WorkerLease time.Duration
	// HandBack hands back every claimed attempt, without counting it as a retry, at
	// the first successful takeover. Set it if the workers are known to be gone: they
	// ran in the same process, which was restarted.
	HandBack bool
	Engine   engine.Settings
	// Archive keeps ended studies that have left the ledger; nil for none.
	Archive *archive.Dir
	// Duties run while this replica leads, each for the length of a term.
	Duties []Duty

	Logger *slog.Logger
	Tracer trace.Tracer
	// Exports tells which of Tracer's spans have been exported; none by default.
	Exports Exports
	Meter   metric.Meter
}

// DefaultOptions returns the options that most coordinators use.
func DefaultOptions() Options {
	return Options{
		Name:        "coordinator",
		Shard:       messaging.Shard,
		LeaseTTL:    6 * time.Second,
		WorkerLease: 20 * time.Second,
	}
}

// Validate returns an error that lists every option that is missing or out of range.
func (o *Options) Validate() error {
	var errs []error
	require := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New("coordinator: "+what))
		}
	}
	require(o.Name != "", "Name is empty")
	require(o.Etcd != nil, "Etcd is nil")
	require(o.Bus != nil, "Bus is nil")
	require(o.NewOptimizer != nil, "NewOptimizer is nil")
	require(election.ValidTTL(o.LeaseTTL),
		fmt.Sprintf("LeaseTTL is %v; want whole seconds, at least %v", o.LeaseTTL, election.MinTTL))
	require(o.WorkerLease > 0, fmt.Sprintf("WorkerLease is %v; want a positive duration", o.WorkerLease))
	return errors.Join(errs...)
}

// Coordinator is one replica. Safe for concurrent use.
type Coordinator struct {
	o               Options
	ledger          *ledger.Ledger
	metrics         *metrics.Metrics
	workers         *lease.Directory
	recommendations *suggest.Recommendations
	tails           chan struct{}     // holds a token for each log that is being read
	buryEvery       time.Duration     // see deadletter.Queue.Retry; tests shorten it
	trim            incoming.TrimRule // tests change it
	space           *disk.Space
	spaceEvery      time.Duration // see disk.Space.Run; tests shorten it
	archives        sync.Mutex    // see archiving

	// term is the current term; nil while this replica does not lead.
	term       atomic.Pointer[leader]
	candidate  *election.Candidate
	handedBack atomic.Bool           // see Options.HandBack
	obstacle   atomic.Pointer[error] // why the last takeover failed; nil if it succeeded

	mu      sync.Mutex
	leading chan struct{} // closed while this replica leads
}

// Worker is a worker as described by its last heartbeat.
type Worker = lease.Worker

// Workers returns the workers that this replica has heard within their lease, by name.
func (c *Coordinator) Workers() []Worker { return c.workers.List(time.Now()) }

// Lacking returns why this replica, if it leads, begins no studies and no trials, as etcd is nearly
// full; nil if it does. The error wraps disk.ErrNearlyFull.
func (c *Coordinator) Lacking() error { return c.space.Lacking() }

// New validates the options and returns a coordinator; Run starts it.
func New(o Options) (*Coordinator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Tracer == nil {
		o.Tracer = tracenoop.NewTracerProvider().Tracer("")
	}
	if o.Exports == nil {
		o.Exports = noExports{}
	}
	if o.Meter == nil {
		o.Meter = metricnoop.NewMeterProvider().Meter("")
	}
	if o.Engine.Space == nil {
		o.Engine.Space = celspace.Of
	}
	o.Ledger.Shard = o.Shard
	c := &Coordinator{
		o: o, ledger: ledger.New(o.Etcd, o.Ledger), workers: lease.NewDirectory(o.WorkerLease),
		recommendations: suggest.NewRecommendations(), spaceEvery: disk.SpaceEvery,
		tails: make(chan struct{}, MaxTails), buryEvery: deadletter.RetryEvery, trim: incoming.DefaultTrimRule(), leading: make(chan struct{}),
	}
	c.space = disk.NewSpace(o.Logger, c.lookAtSpace)
	var err error
	from := metrics.Sources{Leading: func() bool { return c.term.Load() != nil }, Space: c.space.Now}
	if c.metrics, err = metrics.New(o.Meter, from); err != nil {
		return nil, fmt.Errorf("make the coordinator's metrics: %w", err)
	}
	c.candidate = &election.Candidate{
		Client: o.Etcd, Key: c.ledger.LeaderKey(), Value: o.Advertise,
		TTL: o.LeaseTTL, Healthy: c.fit, Logger: o.Logger,
	}
	return c, nil
}

// Exports tells which spans have left the process. It is safe for concurrent use.
type Exports interface {
	// Watch calls f, which returns soon, with the ids of spans that were exported, until
	// stop is called.
	Watch(f func(ids []trace.SpanID)) (stop func())
	// Flush exports the spans that have ended so far.
	Flush(ctx context.Context) error
}

// exportTime bounds the export at the end of a term, which delays the next leader.
const exportTime = 500 * time.Millisecond

// noExports is for processes that export no spans.
type noExports struct{}

func (noExports) Watch(func([]trace.SpanID)) (stop func()) { return func() {} }
func (noExports) Flush(context.Context) error              { return nil }
