// Package load puts Fantasia under load: a nats-server, an etcd and a coordinator, each a
// process of its own, and up to a thousand workers in further processes. Each worker has
// its own connection, directory and spool; its evaluations wait and return. Every run is
// held against the promises: no result lost, none told twice, no attempt run twice.
// Durations are reported, never asserted.
package load

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	workers    = flag.Int("load.workers", 0, "how many workers there are; 0 plays the small form of tests")
	syncAlways = flag.Bool("load.sync", false, "let nats-server sync each write, as it should in production")
	output     = flag.String("load.report", "", "the file for the report as Markdown")
)

// patience bounds waits that should succeed.
const patience = 15 * time.Minute

// sampleEvery is how often the ledger is looked at.
const sampleEvery = 100 * time.Millisecond

func TestMain(m *testing.M) {
	if code, asked := play(); asked {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// size is how large the runs are.
type size struct {
	workers int
	takes   time.Duration // an evaluation
	lasts   time.Duration // about, of a run in which workers are the limit
}

// sizeOf returns the size of the runs by the flags.
func sizeOf() size {
	if *workers == 0 {
		return size{workers: 20, takes: 50 * time.Millisecond, lasts: time.Second}
	}
	return size{workers: *workers, takes: time.Second, lasts: 60 * time.Second}
}

// TestSteady keeps all workers at work in four studies.
func TestSteady(t *testing.T) {
	s := sizeOf()
	p := startPlant(t)
	const studies = 4
	each := int(float64(s.workers) * float64(s.lasts) / float64(s.takes) / studies)
	for _, name := range []string{"a", "b", "c", "d"} {
		p.create(planned{name: name, pool: "default", trials: each, parallelism: max(1, s.workers*5/4/studies)})
	}
	disk := watchDisk(t, p.dir)
	p.observe()
	before, began := p.used(), time.Now()
	p.hire(crew{Pool: "default", Workers: s.workers, Slots: 1, Takes: s.takes})
	for _, st := range p.studies {
		p.await(st, st.trials)
	}
	after, lasted := p.used(), time.Since(began)
	syncs := disk()
	events, wrong := p.close()
	reportSteady(t, s, p, events, wrong, syncs, after.since(before), lasted)
}
