package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/internal/test/memetcd"
)

// replica is a coordinator, which runs, or will.
type replica struct {
	w    *world
	name string

	mu     sync.Mutex
	n      int // of its processes
	log    *process
	c      *coordinator.Coordinator
	etcd   *memetcd.Client
	bus    *membus.Leader
	cancel context.CancelFunc
	done   chan struct{}
	halted bool // it is not started again
	ended  sync.WaitGroup
}

// start starts a process.
func (r *replica) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted || r.cancel != nil || r.w.restoring.Load() {
		return
	}
	r.n++
	etcd, bus := r.w.etcd.Client(r.name), r.w.broker.Replica(r.name)
	o := inject.Coordinator(coordinator.DefaultOptions())
	o.Name, o.Advertise, o.Etcd, o.Bus = r.name, r.name, etcd.Client, bus
	o.LeaseTTL, o.WorkerLease, o.Ledger.MaxCommit = r.w.lease, r.w.workerLease, r.w.maxCommit
	r.log = &process{l: r.w.logs}
	o.Logger = r.log.logger(fmt.Sprint(r.name, "#", r.n))
	c, err := coordinator.New(o)
	if err != nil {
		r.w.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.c, r.etcd, r.bus, r.cancel, r.done = c, etcd, bus, cancel, make(chan struct{})
	done := r.done
	r.ended.Go(func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			r.w.check.fail("%s has ended: %v", r.name, err)
		}
		_ = bus.Close()
		_ = etcd.Close()
	})
}

// running returns the coordinator; nil if none runs.
func (r *replica) running() *coordinator.Coordinator {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		return nil
	}
	return r.c
}

// kill ends the process at once: nothing that it does from now on has an effect.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		return
	}
	r.log.dead.Store(true)
	r.etcd.Kill()
	_ = r.bus.Close()
	r.cancel()
	r.cancel = nil
}

// end asks the process to end, which then resigns.
func (r *replica) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

func (r *replica) restart(after span) { time.AfterFunc(time.Duration(after), r.start) }

func (r *replica) cut(etcd, bus bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.etcd.Cut(etcd)
	r.bus.Cut(bus)
}

func (r *replica) join() { r.cut(false, false) }

// heal ends what ails the replica.
func (r *replica) heal() {
	r.join()
	r.start()
}

// stop ends the replica for good.
func (r *replica) stop() {
	r.mu.Lock()
	r.halted = true
	r.mu.Unlock()
	r.end()
	r.ended.Wait()
}
