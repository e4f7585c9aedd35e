package load

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// table is a table of the report, of two columns.
type table struct {
	title string
	rows  [][2]string
}

func (r *table) add(what, format string, args ...any) {
	r.rows = append(r.rows, [2]string{what, fmt.Sprintf(format, args...)})
}

// times adds the median and the 99th percentile of durations.
func (r *table) times(what string, all []time.Duration) {
	slices.Sort(all)
	r.add(what+", p50 / p99", "%s / %s", milliseconds(percentile(all, 50)), milliseconds(percentile(all, 99)))
}

// safe adds what must not have happened.
func (r *table) safe(wrong findings) {
	r.add("results lost / told twice / attempts run twice", "%d / %d / %d", len(wrong.lost), len(wrong.toldTwice), len(wrong.runTwice))
}

// cpu adds how much processor time each kind of process has used for a result.
func (r *table) cpu(what string, used cpu, results int) {
	each := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(max(1, results)) }
	r.add(what+": coordinator / nats-server / etcd / workers", "%.2f / %.2f / %.2f / %.2f ms",
		each(used.coordinator), each(used.nats), each(used.etcd), each(used.workers))
}

// publish logs the table, and appends it to the report.
func (r *table) publish(t testing.TB) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | |\n| --- | ---: |\n", r.title)
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	t.Logf("\n%s", b.String())
	if *output == "" {
		return
	}
	file, err := os.OpenFile(*output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(file, b.String()); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// percentile is the least of sorted durations that so many percent of them do not exceed.
func percentile(sorted []time.Duration, n int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*n+99)/100-1]
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }

// since is what was used after an earlier time.
func (c cpu) since(before cpu) cpu {
	return cpu{c.coordinator - before.coordinator, c.nats - before.nats, c.etcd - before.etcd, c.workers - before.workers}
}

// watchDisk syncs a file of 4 KiB, as a log of writes does, until the returned function is called. That
// returns how long each took.
func watchDisk(t testing.TB, dir string) (stop func() []time.Duration) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Duration
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		block := make([]byte, 4096)
		for {
			if _, err := file.Write(block); err != nil {
				ended <- err
				return
			}
			began := time.Now()
			if err := file.Sync(); err != nil {
				ended <- err
				return
			}
			all = append(all, time.Since(began))
			select {
			case <-end:
				ended <- file.Close()
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() []time.Duration {
		close(end)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// window is a part of a run, in which the load is even.
type window struct{ from, to time.Time }

func (w window) has(at int64) bool { return at >= w.from.UnixNano() && at < w.to.UnixNano() }

// evenly is from when each worker has had a trial until a study creates no more.
func (p *plant) evenly(events []event) window {
	var w window
	for i := range events {
		if first := time.Unix(0, events[i].Begun); events[i].Free == 0 && first.After(w.from) {
			w.from = first
		}
	}
	for _, s := range p.samples {
		for i, n := range s.created {
			if n == p.studies[i].trials {
				w.to = s.at
				return w
			}
		}
	}
	w.to = w.from
	return w
}

// rate is how many trials were completed a second, in a window.
func (p *plant) rate(w window) float64 {
	sum := 0.0
	for i := range p.studies {
		sum += p.rateOf(i, w)
	}
	return sum
}

// rateOf is rate for one study.
func (p *plant) rateOf(study int, w window) float64 {
	var first, last *sample
	for i := range p.samples {
		if s := &p.samples[i]; w.has(s.at.UnixNano()) {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	if first == nil || first == last {
		return 0
	}
	return float64(last.completed[study]-first.completed[study]) / last.at.Sub(first.at).Seconds()
}

// between is while the first study had so many completed trials.
func (p *plant) between(from, to int) (w window) {
	for i := range p.samples {
		s := &p.samples[i]
		if s.completed[0] < from {
			w.from = s.at
		}
		if w.to = s.at; s.completed[0] >= to {
			break
		}
	}
	return w
}

// until is how long after a time a sample first meets a condition.
func (p *plant) until(since time.Time, meets func(*sample) bool) string {
	for i := range p.samples {
		if s := &p.samples[i]; s.at.After(since) && meets(s) {
			return fmt.Sprintf("%.1f s", s.at.Sub(since).Seconds())
		}
	}
	return "not within the run"
}

// reportSteady reports a run in which workers were the limit.
func reportSteady(t testing.TB, s size, p *plant, events []event, wrong findings, syncs []time.Duration, used cpu) {
	t.Helper()
	w := p.evenly(events)
	var claims, waits, fetches []time.Duration
	var idle, busy time.Duration
	for i := range events {
		e := &events[i]
		if e.Free == 0 || e.Claimed == 0 || !w.has(e.Free) || !w.has(e.Begun) {
			continue
		}
		claims = append(claims, time.Duration(e.Claimed-e.Fetched))
		waits = append(waits, time.Duration(e.Claimed-e.Free))
		fetches = append(fetches, time.Duration(e.Fetched-e.Free))
		idle += time.Duration(e.Begun - e.Free)
		busy += time.Duration(max(0, e.Ended-e.Begun))
	}
	r := table{title: fmt.Sprintf("%d workers, evaluations of %s, %d studies", s.workers, s.takes, len(p.studies))}
	r.add("durable results a second", "%.0f", p.rate(w))
	r.add("idle share of the slots", "%.2f %%", 100*idle.Seconds()/max(1e-9, idle.Seconds()+busy.Seconds()))
	r.times("from a slot's end to its next claim", waits)
	r.times("of that, until it has an assignment", fetches)
	r.times("of that, the claim", claims)
	r.times("fsync of 4 KiB on that disk meanwhile", syncs)
	r.cpu("processor time for a result", used, total(p.samples[len(p.samples)-1].completed))
	r.safe(wrong)
	r.publish(t)
}
