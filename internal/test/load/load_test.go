// Package load puts Fantasia under load: a nats-server, an etcd and a coordinator, each a
// process of its own, and up to a thousand workers in further processes. Each worker has
// its own connection, directory and spool; its evaluations wait and return. Every run is
// held against the promises: no result lost, none told twice, no attempt run twice.
// Durations are reported, never asserted.
package load

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

var (
	workers    = flag.Int("load.workers", 0, "how many workers there are; 0 plays the small form of tests")
	syncAlways = flag.Bool("load.sync", false, "let nats-server sync each write, as it should in production")
	history    = flag.Int("load.history", 50_000, "how many trials a long study has behind it")
	profiles   = flag.String("load.profiles", "", "the directory for profiles of the coordinator; none unless given")
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
	return size{workers: *workers, takes: time.Second, lasts: 30 * time.Second}
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
	before := p.used()
	p.hire(crew{Pool: "default", Workers: s.workers, Slots: 1, Takes: s.takes})
	for _, st := range p.studies {
		p.await(st, st.trials)
	}
	after := p.used()
	syncs := disk()
	events, wrong := p.close()
	reportSteady(t, s, p, events, wrong, syncs, after.since(before))
}

// TestHistory runs one study whose evaluations take no time, up to a long history. On the
// way it measures the rate, the API and the leader's memory.
func TestHistory(t *testing.T) {
	marks, wide, c := []int{0, 100, 300}, 100, crew{Pool: "default", Workers: 4, Slots: 4}
	if *workers > 0 {
		marks, wide, c = []int{0, *history / 5, *history}, max(100, *history/10), crew{Pool: "default", Workers: 50, Slots: 8}
	}
	p := startPlant(t)
	last := marks[len(marks)-1]
	s := planned{name: "long", pool: "default", trials: 2 * (last + wide), parallelism: 5 * c.Workers * c.Slots / 4}
	p.create(s)
	s = p.studies[0]
	p.observe()
	r := &table{title: fmt.Sprintf("%d slots of %d workers, evaluations of no time, one study", c.Workers*c.Slots, c.Workers)}
	p.hire(c)
	heaps, sizes := make([]int, len(marks)), make([]int, len(marks))
	for i, mark := range marks {
		from, before := p.await(s, mark+wide/5), p.used()
		asked := p.etcdUse()
		if *profiles != "" {
			p.keepProfile(fmt.Sprintf("cpu-%d", mark), "profile?seconds=5")
		}
		to := p.await(s, mark+wide)
		r.cpu(fmt.Sprintf("processor time for a result after %d trials", mark), p.used().since(before), to-from)
		now := p.etcdUse()
		r.add(fmt.Sprintf("proposals of etcd, and bytes that it is sent, for a result after %d trials", mark), "%.2f / %.0f",
			(now.proposals-asked.proposals)/float64(to-from), (now.received-asked.received)/float64(to-from))
		heaps[i], sizes[i] = p.heap(), p.etcdSize()
		if *profiles != "" {
			p.keepProfile(fmt.Sprintf("heap-%d", mark), "heap?gc=1")
		}
	}
	p.measureAPI(r, s, "while it runs")
	took := timed(t, func(ctx context.Context) error {
		_, err := p.api.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/" + s.name}))
		return err
	})
	r.add("stop the study", "%s", milliseconds(took))
	p.measureAPI(r, s, "when it has ended")
	_, wrong := p.close()
	for _, mark := range marks {
		r.add(fmt.Sprintf("durable results a second after %d trials", mark), "%.0f", p.rate(p.between(mark+wide/5, mark+wide)))
	}
	for i, mark := range marks {
		r.add(fmt.Sprintf("heap of the leader after %d trials", mark+wide), "%.0f MB", float64(heaps[i])/1e6)
	}
	n := len(marks) - 1
	r.add("of it for each trial", "%.0f bytes", float64(heaps[n]-heaps[0])/float64(marks[n]-marks[0]))
	r.add("of etcd's database for each trial", "%.0f bytes", float64(sizes[n]-sizes[0])/float64(marks[n]-marks[0]))
	r.safe(wrong)
	r.publish(t)
}

// TestOutage kills nats-server while all workers are at work, and starts it again. All
// workers come back at once, each with a result in its spool.
func TestOutage(t *testing.T) {
	s, away := sizeOf(), time.Second
	if *workers > 0 {
		away = time.Minute
	}
	p := startPlant(t)
	const studies = 4
	each := int(float64(s.workers) * float64(s.lasts) / float64(s.takes) / studies)
	for _, name := range []string{"a", "b", "c", "d"} {
		p.create(planned{name: name, pool: "default", trials: each, parallelism: max(1, s.workers*5/4/studies)})
	}
	p.observe()
	p.hire(crew{Pool: "default", Workers: s.workers, Slots: 1, Takes: s.takes})
	p.await(p.studies[0], each/3)
	killed := time.Now()
	p.nats.Kill()
	time.Sleep(away) // the outage
	p.nats.Restart()
	back := time.Now()
	for _, st := range p.studies {
		p.await(st, st.trials)
	}
	events, wrong := p.close()
	waiting, all := 0, 0
	for i := range events {
		if e := &events[i]; e.Ended != 0 && e.Ended < back.UnixNano() {
			all++
			if e.Ended > killed.UnixNano() {
				waiting++
			}
		}
	}
	even := p.evenly(events)
	before := p.rate(window{even.from, killed})
	r := table{title: fmt.Sprintf("%d workers, evaluations of %s, nats-server killed and away for %s", s.workers, s.takes, away)}
	r.add("evaluations that ended meanwhile", "%d", waiting)
	r.add("from nats-server's return until all of these are durable", "%s",
		p.until(back, func(s *sample) bool { return total(s.completed) >= all }))
	r.add("durable results a second before", "%.0f", before)
	r.add("from its return until the rate of a second is 90 % of that", "%s", p.until(back, func(s *sample) bool {
		return p.rate(window{s.at.Add(-time.Second), s.at.Add(time.Millisecond)}) >= 0.9*before
	}))
	r.safe(wrong)
	r.publish(t)
}

// TestFlood runs a study alone, and then beside one whose programs report measurements as
// fast as they can.
func TestFlood(t *testing.T) {
	s := sizeOf()
	flooders, every := 4, 5*time.Millisecond
	if *workers > 0 {
		s.workers = max(20, s.workers/5)
		flooders, every = 50, time.Millisecond
	}
	p := startPlant(t)
	trials := int(float64(s.workers) * float64(s.lasts) / float64(s.takes))
	normal := planned{name: "normal", pool: "default", trials: trials, parallelism: s.workers * 5 / 4}
	flood := planned{name: "flood", pool: "flood", trials: 100 * trials, parallelism: flooders * 2}
	p.create(normal)
	p.create(flood)
	p.observe()
	p.hire(crew{Pool: normal.pool, Workers: s.workers, Slots: 1, Takes: s.takes})
	p.await(normal, s.workers)
	busy := time.Now()
	p.await(normal, trials/2)
	alone := time.Now()
	p.hire(crew{Pool: flood.pool, Workers: flooders, Slots: 1, Takes: s.takes, Reports: every})
	p.await(flood, flooders)
	beside, stored := time.Now(), p.reportsStored()
	p.await(normal, trials*9/10)
	over, more := time.Now(), p.reportsStored()-stored
	timed(t, func(ctx context.Context) error {
		_, err := p.api.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/" + flood.name}))
		return err
	})
	p.await(normal, trials)
	_, wrong := p.close()
	r := table{title: fmt.Sprintf("%d workers, evaluations of %s, beside %d programs that report each %s", s.workers, s.takes, flooders,
		every)}
	r.add("durable results a second alone", "%.0f", p.rateOf(0, window{busy, alone}))
	r.add("beside the flood", "%.0f", p.rateOf(0, window{beside, over}))
	r.add("measurements a second that the flood's workers publish", "%.0f", float64(more)/over.Sub(beside).Seconds())
	r.safe(wrong)
	r.publish(t)
}
