// Package testcluster runs coordinators as processes beside NATS and etcd, for
// tests of the whole.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	clientv3 "go.etcd.io/etcd/client/v3"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// LeaseTTL is that of the coordinators' leases.
const LeaseTTL = 2 * time.Second

// The bounds of waits that should succeed: for a leader or an answer, and for trials.
const (
	soon     = time.Minute
	patience = 2 * time.Minute
)

// Options say which coordinators to start.
type Options struct {
	// Coordinators is how many of them there are.
	Coordinators int
	// Args follow those that all coordinators have; Env is added to the
	// environment, as name=value. Build are flags of go build.
	Args, Env, Build []string
	// Etcd are flags of etcd.
	Etcd []string
}

// Cluster is NATS, etcd and coordinators. Its methods fail the test where what
// they wait for does not come; they are for the test's own goroutine.
type Cluster struct {
	// NATS is the server's URL.
	NATS   string
	Etcd   *clientv3.Client
	Ledger *ledger.Ledger
	// EtcdServer and NATSServer are their processes.
	EtcdServer *testenv.Etcd
	NATSServer *testenv.NATS
	// Program is the coordinator's.
	Program string
	// Coordinators are the processes, by the addresses of their APIs.
	Coordinators map[string]*testenv.Process
	HTTP         *http.Client

	t testing.TB
}

// Start starts a cluster for the length of the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	nats, etcd := testenv.StartNATS(t, testenv.NATSConfig{}), testenv.StartEtcd(t, o.Etcd...)
	c := &Cluster{
		NATS: nats.URL, EtcdServer: etcd, NATSServer: nats, Etcd: testenv.EtcdClient(t, etcd.URL),
		Program:      testenv.Build(t, "github.com/fantasia-hpo/fantasia/cmd/coordinator", o.Build...),
		Coordinators: map[string]*testenv.Process{}, HTTP: &http.Client{Timeout: 10 * time.Second}, t: t,
	}
	t.Cleanup(c.HTTP.CloseIdleConnections)
	c.Ledger = ledger.New(c.Etcd, ledger.Options{})
	for range o.Coordinators {
		c.Add(o.Args, o.Env)
	}
	return c
}

// Add starts one more coordinator, with arguments and additional environment variables.
func (c *Cluster) Add(args, env []string) {
	c.t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(c.t))
	all := slices.Concat([]string{
		"--etcd", c.EtcdServer.URL, "--nats", c.NATS, "--listen", address, "--name", fmt.Sprintf("c%d", len(c.Coordinators)), "--lease-ttl",
		LeaseTTL.String(),
	}, args)
	c.Coordinators[address] = testenv.Start(c.t, c.Program, all, env, c.Answering(address, "/readyz"))
}

// Answering is a check, for testenv.Start or testenv.Eventually, that a program
// answers at an address and a path with 200.
func (c *Cluster) Answering(address, path string) func(context.Context) error {
	return func(ctx context.Context) error { return testenv.Answers(ctx, c.HTTP, "http://"+address+path) }
}

// Client talks to some coordinator that lives: any of them answers.
func (c *Cluster) Client() fantasiav1connect.StudyServiceClient {
	c.t.Helper()
	for address, p := range c.Coordinators {
		if p.State() == "" {
			return fantasiav1connect.NewStudyServiceClient(c.HTTP, "http://"+address)
		}
	}
	c.t.Fatal("no coordinator lives")
	return nil
}

// Create creates a study from the text of its file, if need be by asking again.
func (c *Cluster) Create(file string) {
	c.t.Helper()
	testenv.Eventually(c.t, soon, func(ctx context.Context) error {
		_, err := c.Client().CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file}))
		if connect.CodeOf(err) == connect.CodeAlreadyExists {
			return nil
		}
		return err
	})
}

// Await waits until so many trials of a study have ended, or the study.
func (c *Cluster) Await(name string, ended int) (s ledger.Summary, over bool) {
	c.t.Helper()
	testenv.Eventually(c.t, patience, func(ctx context.Context) (err error) {
		if s, err = c.Ledger.Study(ctx, name); err != nil {
			return err
		}
		if s.Status.State == study.Running && s.Status.Counts.Ended() < ended {
			return fmt.Errorf("%+v have ended, want %d", s.Status.Counts, ended)
		}
		return nil
	})
	return s, s.Status.State != study.Running
}

// Leader waits for a leader of an epoch later than a given one.
func (c *Cluster) Leader(after int64) (p *testenv.Process, address string, epoch int64) {
	c.t.Helper()
	testenv.Eventually(c.t, soon, func(ctx context.Context) (err error) {
		address, epoch, err = election.Leader(ctx, c.Etcd, c.Ledger.LeaderKey())
		if err == nil && epoch <= after {
			err = errors.New("the old leader's key is still there")
		}
		return err
	})
	if p = c.Coordinators[address]; p == nil {
		c.t.Fatalf("the leader advertises %q, which is no coordinator", address)
	}
	return p, address, epoch
}

// KillLeader kills whichever coordinator leads, and starts it again once another
// has taken over.
func (c *Cluster) KillLeader() {
	c.t.Helper()
	p, _, epoch := c.Leader(0)
	p.Kill()
	c.Leader(epoch)
	p.Restart()
}
