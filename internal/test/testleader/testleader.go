// Package testleader starts real coordinators over an etcd and a bus in memory, for tests of what
// stands on a coordinator. A leader leads within milliseconds, and nothing is written to disk.
package testleader

import (
	"context"
	"errors"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/internal/test/memetcd"
)

// Cluster is an etcd and a broker in memory.
type Cluster struct {
	Etcd   *memetcd.Server
	Broker *membus.Broker
}

// New returns a cluster without coordinators.
func New() *Cluster {
	return &Cluster{memetcd.New(memetcd.Options{}), membus.New(membus.Options{})}
}

// Replica is a coordinator of a cluster, with its connection to etcd.
type Replica struct {
	*coordinator.Coordinator
	Etcd *memetcd.Client
	Bus  *membus.Leader

	t    testing.TB
	stop context.CancelFunc
	done chan error
}

// Start starts a coordinator with a name, which need not lead. It ends with the test.
func (c *Cluster) Start(t testing.TB, name string, change ...func(*coordinator.Options)) *Replica {
	t.Helper()
	r := &Replica{Etcd: c.Etcd.Client(name), Bus: c.Broker.Leader(), t: t, done: make(chan error, 1)}
	o := inject.Coordinator(coordinator.DefaultOptions())
	o.Name, o.Advertise, o.Etcd, o.Bus = name, name, r.Etcd.Client, r.Bus
	for _, f := range change {
		f(&o)
	}
	var err error
	if r.Coordinator, err = coordinator.New(o); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(r.Stop)
	return r
}

// Lead starts a cluster of one coordinator, which leads when it returns.
func Lead(t testing.TB, change ...func(*coordinator.Options)) (*Replica, *membus.Broker) {
	t.Helper()
	c := New()
	r := c.Start(t, "coordinator", change...)
	if err := r.Leading(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, c.Broker
}

// Stop ends the coordinator, as Cleanup does, and waits for its end. Another one then leads.
func (r *Replica) Stop() {
	if r.stop == nil {
		return
	}
	r.stop()
	r.stop = nil
	if err := errors.Join(<-r.done, r.Bus.Close()); err != nil {
		r.t.Error(err)
	}
	_ = r.Etcd.Close() // it always says that it was cancelled
}
