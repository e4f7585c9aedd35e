package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const module = "github.com/fantasia-hpo/fantasia/"

const (
	// replicas is how many coordinators, nats-servers and etcds there are.
	replicas = 3
	workers  = 8
	slots    = 2
	// workerLease is after how long the trials of a silent worker or client are lost.
	workerLease = 3 * time.Second
	// soon bounds waits for what must be there again after a fault.
	soon = 90 * time.Second
)

// site is a process with the proxies through which it reaches the others, and through
// which it is reached.
type site struct {
	*testenv.Process
	name       string
	nats, etcd []*testenv.Proxy // in front of each server; workers have none of etcd
	api        *testenv.Proxy   // in front of a coordinator's API
	state      string           // a worker's directory
}

// links are all proxies of a site.
func (s *site) links() []*testenv.Proxy {
	all := slices.Concat(s.nats, s.etcd)
	if s.api != nil {
		all = append(all, s.api)
	}
	return all
}

// fleet is everything that runs. Its methods are for the test's own goroutine, except
// those that say otherwise.
type fleet struct {
	t      *testing.T
	dir    string
	nats   []*testenv.NATS
	routes map[[2]int]*testenv.Proxy // of nats-servers: from, to
	etcd   []*testenv.Etcd
	peers  []*testenv.Proxy // in front of each etcd, for the others
	ids    []string         // of the etcds, as they name themselves to each other

	coordinators, workers []*site

	// ledgers read through each etcd, without a proxy. Safe for concurrent use.
	ledgers []*ledger.Ledger
	clients []*clientv3.Client
	streams jetstream.JetStream
	http    *http.Client
	calls   atomic.Int64 // of the API, so far
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), routes: map[[2]int]*testenv.Proxy{}, http: &http.Client{Timeout: 8 * time.Second}}
	t.Cleanup(f.http.CloseIdleConnections)
	f.nats = testenv.StartNATSCluster(t, replicas, testenv.NATSConfig{Route: func(from, to int, address string) string {
		p := testenv.StartProxy(t, address)
		f.routes[[2]int{from, to}] = p
		return p.Addr
	}})
	conn, err := nats.Connect(strings.Join(f.natsURLs(), ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if f.streams, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	f.etcd = testenv.StartEtcdClusterBehind(t, replicas, func(_ int, peer string) string {
		p := testenv.StartProxy(t, peer)
		f.peers = append(f.peers, p)
		return "http://" + p.Addr
	})
	for _, e := range f.etcd {
		c := testenv.EtcdClient(t, e.URL)
		f.clients = append(f.clients, c)
		f.ledgers = append(f.ledgers, ledger.New(c, ledger.Options{}))
	}
	f.ids = make([]string, replicas)
	testenv.Eventually(t, soon, func(ctx context.Context) error {
		list, err := f.clients[0].MemberList(ctx)
		if err != nil {
			return err
		}
		for i := range f.etcd {
			for _, m := range list.Members {
				if m.Name == fmt.Sprintf("etcd-%d", i) {
					f.ids[i] = strconv.FormatUint(m.ID, 16)
				}
			}
		}
		if slices.Contains(f.ids, "") {
			return fmt.Errorf("members %v: some have no name yet", list.Members)
		}
		return nil
	})
	program := testenv.Build(t, module+"cmd/coordinator")
	for i := range replicas {
		f.startCoordinator(i, program)
	}
	program = testenv.Build(t, module+"cmd/worker")
	for i := range workers {
		f.startWorker(i, program)
	}
	return f
}

// through starts a proxy in front of each server, and joins their URLs.
func (f *fleet) through(urls []string) (proxies []*testenv.Proxy, joined string) {
	f.t.Helper()
	var reached []string
	for _, u := range urls {
		scheme, _, _ := strings.Cut(u, "://")
		p := testenv.StartProxy(f.t, u)
		proxies, reached = append(proxies, p), append(reached, scheme+"://"+p.Addr)
	}
	return proxies, strings.Join(reached, ",")
}

func (f *fleet) natsURLs() (urls []string) {
	for _, n := range f.nats {
		urls = append(urls, n.URL)
	}
	return urls
}

func (f *fleet) startCoordinator(i int, program string) {
	f.t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(f.t))
	s := &site{name: fmt.Sprintf("coordinator-%d", i), api: testenv.StartProxy(f.t, address)}
	var nats, etcd string
	s.nats, nats = f.through(f.natsURLs())
	var urls []string
	for _, e := range f.etcd {
		urls = append(urls, e.URL)
	}
	s.etcd, etcd = f.through(urls)
	s.Process = testenv.Start(f.t, program, []string{
		"--etcd", etcd, "--nats", nats, "--replicas", strconv.Itoa(replicas), "--listen", address, "--advertise", s.api.Addr, "--name", s.name,
		"--lease-ttl", testcluster.LeaseTTL.String(), "--worker-lease", workerLease.String(),
	}, nil, func(ctx context.Context) error { return testenv.Answers(ctx, f.http, "http://"+address+"/readyz") })
	f.coordinators = append(f.coordinators, s)
}

func (f *fleet) startWorker(i int, program string) {
	f.t.Helper()
	s := &site{name: fmt.Sprintf("worker-%d", i), state: filepath.Join(f.dir, fmt.Sprintf("worker-%d", i))}
	var nats string
	s.nats, nats = f.through(f.natsURLs())
	args := []string{
		"--nats", nats, "--slots", strconv.Itoa(slots), "--heartbeat", "500ms", "--gpus", "none", "--allow-study-commands",
		"--drain", "2s", "--state", s.state,
	}
	if i%2 == 0 { // the others keep a name in their directory, and get another one with a new directory
		args = append(args, "--name", s.name)
	}
	s.Process = testenv.Start(f.t, program, args, nil, nil)
	f.workers = append(f.workers, s)
}

// readLedger reads the ledger through one etcd after the other, until one answers or ctx ends.
// Safe for concurrent use.
func readLedger[T any](ctx context.Context, f *fleet, get func(context.Context, *ledger.Ledger) (T, error)) (v T, err error) {
	for {
		for _, l := range f.ledgers {
			one, cancel := context.WithTimeout(ctx, time.Second)
			v, err = get(one, l)
			cancel()
			if err == nil || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt) {
				return v, err
			}
			if pause(ctx, 20*time.Millisecond) != nil {
				return v, err
			}
		}
	}
}

// api calls one coordinator after another. Safe for concurrent use.
func (f *fleet) api() fantasiav1connect.StudyServiceClient {
	return fantasiav1connect.NewStudyServiceClient(f.http, "http://"+f.coordinators[f.calls.Add(1)%replicas].api.Addr)
}

// leader waits for a leader, and returns which coordinator it is.
func (f *fleet) leader() *site {
	f.t.Helper()
	var found *site
	testenv.Eventually(f.t, soon, func(ctx context.Context) (err error) {
		found, err = f.leads(ctx)
		return err
	})
	return found
}

func (f *fleet) leads(ctx context.Context) (*site, error) {
	err := errors.New("no etcd answers")
	for i, l := range f.ledgers {
		var address string
		one, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		address, _, err = election.Leader(one, f.clients[i], l.LeaderKey())
		cancel()
		if err != nil {
			continue
		}
		for _, c := range f.coordinators {
			if c.api.Addr == address {
				return c, nil
			}
		}
		return nil, fmt.Errorf("the leader advertises %q, which is no coordinator", address)
	}
	return nil, err
}

// follower is a coordinator that does not lead.
func (f *fleet) follower(r *rand.Rand) *site {
	f.t.Helper()
	l := f.leader()
	i := r.IntN(replicas)
	if f.coordinators[i] == l {
		i = (i + 1) % replicas
	}
	return f.coordinators[i]
}

// etcdLeader is the number of the etcd that leads the others.
func (f *fleet) etcdLeader() int {
	f.t.Helper()
	leads := -1
	testenv.Eventually(f.t, soon, func(ctx context.Context) error {
		for i, c := range f.clients {
			s, err := c.Status(ctx, f.etcd[i].URL)
			if err == nil && s.Leader == s.Header.MemberId {
				leads = i
				return nil
			}
		}
		return errors.New("no etcd leads")
	})
	return leads
}

// splitNATS holds everything between a nats-server and the others.
func (f *fleet) splitNATS(i int) (heal func()) {
	var stalled []*testenv.Proxy
	for pair, p := range f.routes {
		if pair[0] == i || pair[1] == i {
			p.Hold()
			stalled = append(stalled, p)
		}
	}
	return func() { healAll(stalled) }
}

// splitEtcd holds everything between an etcd and the others. Members name themselves in
// the first bytes of each connection, by which those of one are known.
func (f *fleet) splitEtcd(i int) (heal func()) {
	name := []byte("X-Server-From: " + f.ids[i])
	for j, p := range f.peers {
		if j == i {
			p.Hold()
		} else {
			p.HoldOnly(func(first []byte) bool { return bytes.Contains(first, name) })
		}
	}
	return func() { healAll(f.peers) }
}

// deleteStream deletes a stream, as an administrator can.
func (f *fleet) deleteStream(name string) {
	f.t.Helper()
	testenv.Eventually(f.t, soon, func(ctx context.Context) error {
		err := f.streams.DeleteStream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) { // an answer was lost
			return nil
		}
		return err
	})
}

// deleteConsumers deletes the consumers of a stream.
func (f *fleet) deleteConsumers(stream string) {
	f.t.Helper()
	testenv.Eventually(f.t, soon, func(ctx context.Context) error {
		s, err := f.streams.Stream(ctx, stream)
		if err != nil {
			return err
		}
		list := s.ConsumerNames(ctx)
		for name := range list.Name() {
			if err := s.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		return list.Err()
	})
}

func healAll(proxies []*testenv.Proxy) {
	for _, p := range proxies {
		p.Heal()
	}
}

// wipe deletes the directory of a worker that has ended.
func (s *site) wipe(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(s.state); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits until every process serves.
func (f *fleet) awaitReady() {
	f.t.Helper()
	for _, e := range f.etcd {
		e.AwaitReady()
	}
	for _, n := range f.nats {
		n.AwaitReady()
	}
	for _, c := range f.coordinators {
		c.AwaitReady()
	}
}

// stop asks Fantasia's programs to end, and fails the test if one does not end well.
func (f *fleet) stop() {
	f.t.Helper()
	for _, s := range slices.Concat(f.workers, f.coordinators) {
		s.Stop()
		if state := s.State(); state != "exit status 0" {
			f.t.Errorf("%s ends with %s after SIGTERM, want exit status 0", s.name, state)
		}
	}
}

// pause waits, and returns an error if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
