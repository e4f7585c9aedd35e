package load

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestIdle measures what studies cost that wait for workers, and workers that wait for trials: their heartbeats.
func TestIdle(t *testing.T) {
	s, studies := sizeOf(), 5
	if *workers > 0 {
		studies = 200
	}
	p := startPlant(t)
	p.create(planned{name: "first", pool: "nobody", trials: 100, parallelism: 1})
	p.observe()
	r := table{title: fmt.Sprintf("%d studies and %d workers that wait", studies, s.workers)}
	before := p.heap()
	for i := range studies {
		p.create(planned{name: fmt.Sprintf("waiting%d", i), pool: "nobody", trials: 100, parallelism: 1})
	}
	r.add("heap of the leader for each study", "%.1f kB", float64(p.heap()-before)/1e3/float64(studies))
	p.second(&r, "processor time a second of these studies", s.lasts)
	p.hire(crew{Pool: "default", Workers: s.workers, Slots: 1})
	p.second(&r, "processor time a second of both", s.lasts)
	_, wrong := p.close()
	r.safe(wrong)
	r.publish(t)
}

// second adds how much processor time each kind of process uses a second, while nothing happens.
func (p *plant) second(r *table, what string, lasts time.Duration) {
	time.Sleep(lasts / 3) // what came before ends
	begun, before := time.Now(), p.used()
	time.Sleep(lasts)
	r.cpu(what, p.used().since(before), int(time.Since(begun).Seconds()))
}

// etcdUse is what etcd has done so far.
type etcdUse struct{ proposals, received float64 }

// etcdUse reads it from etcd's metrics.
func (p *plant) etcdUse() (u etcdUse) {
	p.t.Helper()
	answer, err := http.Get(p.etcd.URL + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case name == "etcd_server_proposals_applied_total" && err == nil:
			u.proposals = n
		case name == "etcd_network_client_grpc_received_bytes_total" && err == nil:
			u.received = n
		}
	}
	if u.proposals == 0 || u.received == 0 {
		p.t.Fatal("etcd's metrics have no proposals, or no bytes of clients")
	}
	return u
}

// etcdSize is what the ledger takes in etcd's database without earlier revisions, in bytes.
func (p *plant) etcdSize() int {
	p.t.Helper()
	status, err := p.client.Status(p.t.Context(), p.etcd.URL)
	if err == nil {
		_, err = p.client.Compact(p.t.Context(), status.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		status, err = p.client.Status(p.t.Context(), p.etcd.URL)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return int(status.DbSizeInUse)
}
