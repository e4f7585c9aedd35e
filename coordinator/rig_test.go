package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/incoming"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies/studiestest"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/goleak"
)

// patience bounds the waits of these tests.
const patience = time.Minute

// etcd is the server that all tests share: each rig uses its own prefix.
var (
	etcd *embedded.Etcd
	rigs atomic.Int64
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "coordinator-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if etcd, err = embedded.StartEtcd(ctx, embedded.EtcdOptions{Dir: dir}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	return m.Run(), nil
}

// rig is one shard: a broker in memory, a part of etcd, replicas and workers.
type rig struct {
	t      testing.TB
	server *embedded.Etcd
	prefix string // of its keys
	broker *membus.Broker
	ledger *ledger.Ledger
	etcd   *clientv3.Client
	trim   incoming.TrimRule // of coordinators that are started; zero for the usual one
}

func newRig(t testing.TB, o membus.Options) *rig {
	t.Helper()
	return newRigOn(t, etcd, o)
}

// newRigOn is newRig with an etcd of its own.
func newRigOn(t testing.TB, server *embedded.Etcd, o membus.Options) *rig {
	t.Helper()
	r := &rig{t: t, server: server, broker: membus.New(o), prefix: fmt.Sprintf("%s/%d/", t.Name(), rigs.Add(1))}
	r.etcd = r.client()
	r.ledger = ledger.New(r.etcd, ledger.Options{})
	return r
}

// client returns an etcd client that sees only this test's keys.
func (r *rig) client() *clientv3.Client {
	r.t.Helper()
	c, err := r.server.Client()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	c.KV = namespace.NewKV(c.KV, r.prefix)
	c.Watcher = namespace.NewWatcher(c.Watcher, r.prefix)
	c.Lease = namespace.NewLease(c.Lease, r.prefix)
	return c
}

// replica is a running coordinator.
type replica struct {
	*Coordinator
	bus  *membus.Leader
	stop func()
}

// replica starts a coordinator with the tests' default options, as changed by the
// caller.
func (r *rig) replica(change ...func(*Options)) *replica {
	r.t.Helper()
	o := DefaultOptions()
	bus := r.broker.Leader()
	o.Etcd, o.Bus = r.client(), bus
	o.LeaseTTL, o.WorkerLease = 2*time.Second, 2*time.Second
	o.NewOptimizer = newSampler
	o.Logger = slog.New(slog.NewTextHandler(logTo{r.t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	c.buryEvery, c.spaceEvery = 50*time.Millisecond, 50*time.Millisecond
	if r.trim != (incoming.TrimRule{}) {
		c.trim = r.trim
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	p := &replica{Coordinator: c, bus: bus, stop: func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the coordinator ended: %v", err)
		}
	}}
	r.t.Cleanup(func() {
		p.stop()
		_ = bus.Close()
	})
	return p
}

// leader starts a replica and waits until it leads.
func (r *rig) leader(change ...func(*Options)) *replica {
	r.t.Helper()
	p := r.replica(change...)
	if err := p.Leading(r.ctx()); err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

// eventually calls try until it returns nil.
func (r *rig) eventually(try func() error) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("not within %v: %v", patience, err)
		}
	}
}

// create creates a study with a number of trials.
func (r *rig) create(c *replica, name string, trials, parallelism int, change ...func(*study.Spec)) *record.Study {
	r.t.Helper()
	s, err := c.Create(r.ctx(), newStudy(name, trials, parallelism, change...))
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// ends waits until a study has ended.
func (r *rig) ends(id string) ledger.Summary {
	r.t.Helper()
	return r.until(id, func(s ledger.Summary) bool { return s.Status.State.Terminal() })
}

// until waits until a study satisfies a condition.
func (r *rig) until(id string, ok func(ledger.Summary) bool) (s ledger.Summary) {
	r.t.Helper()
	r.eventually(func() (err error) {
		if s, err = r.ledger.Study(r.t.Context(), id); err != nil {
			return err
		}
		if !ok(s) {
			return fmt.Errorf("the study is %s (%s) with %+v", s.Status.State, s.Status.Reason, s.Status.Counts)
		}
		return nil
	})
	return s
}

// trial waits until a trial satisfies a condition.
func (r *rig) trial(id string, number int, ok func(*record.Trial) bool) (t record.Trial) {
	r.t.Helper()
	r.eventually(func() (err error) {
		if t, err = r.ledger.Trial(r.t.Context(), id, number); err != nil {
			return err
		}
		if !ok(&t) {
			return fmt.Errorf("trial %d is %s with the attempts %+v", number, t.State, t.Attempts)
		}
		return nil
	})
	return t
}

// verify checks that the ledger's records of an ended study are consistent: every trial
// was created once and ended once, and the expected number completed.
func (r *rig) verify(id string, trials, completed int) *ledger.Records {
	r.t.Helper()
	s, err := r.ledger.LoadStudy(r.ctx(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(s.Trials) != trials || s.Status.Counts.Ended() != trials || s.Status.Counts.Open() != 0 || s.Status.Counts.Completed != completed {
		r.t.Errorf("%d trials with %+v, want %d ended ones, %d of them completed", len(s.Trials), s.Status.Counts, trials, completed)
	}
	// The position grows by one with each created and with each ended trial.
	if s.Status.Position != int64(2*trials) {
		r.t.Errorf("the ledger stands at position %d, want %d", s.Status.Position, 2*trials)
	}
	at := map[int64]int{}
	for i := range s.Trials {
		for _, p := range []int64{s.Trials[i].Created, s.Trials[i].Ended} {
			if other := at[p]; other != 0 || p == 0 {
				r.t.Errorf("position %d is that of trial %d and of trial %d", p, other, s.Trials[i].Number)
			}
			at[p] = s.Trials[i].Number
		}
	}
	return s
}

// newStudy is a study of one number.
func newStudy(name string, trials, parallelism int, change ...func(*study.Spec)) *study.Study {
	return studiestest.Definition(name, trials, parallelism, change...)
}

// sampler is an optimiser that draws at random.
type sampler struct{}

func (sampler) Suggest(_ context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	s := make([]optimizer.Suggestion, n)
	x := p.Space.Parameters()[0]
	for i := range s {
		s[i] = optimizer.Suggestion{Point: study.Point{"x": *x.Min + rng.Float64()*(*x.Max-*x.Min)}, Source: optimizer.SourceRandom}
	}
	return s, state, nil
}

func newSampler(study.Algorithm) (optimizer.Optimizer, error) { return sampler{}, nil }

// stateful is a sampler with a state.
type stateful struct{ sampler }

func (s stateful) Suggest(ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	suggestions, _, err := s.sampler.Suggest(ctx, p, state, n, rng)
	return suggestions, optimizer.State("fitted"), err
}

// modelled is a sampler that recommends.
type modelled struct {
	stateful
	recommend func(*optimizer.Problem, optimizer.State) (*optimizer.Recommendation, error)
}

func (m modelled) Recommend(_ context.Context, p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
	return m.recommend(p, state)
}

// recommending makes every study's optimiser a modelled one.
func recommending(recommend func(*optimizer.Problem, optimizer.State) (*optimizer.Recommendation, error)) func(*Options) {
	return func(o *Options) {
		o.NewOptimizer = func(study.Algorithm) (optimizer.Optimizer, error) { return modelled{recommend: recommend}, nil }
	}
}

// contains returns an error that names a wanted part that a text lacks.
func contains(text string, wanted ...string) error {
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			return fmt.Errorf("no %s", want)
		}
	}
	return nil
}

// logTo returns a logger that writes to the test's log.
type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// trialRecord is a trial as the ledger has it.
type trialRecord = record.Trial

// named is the id of a trial's attempt as the ledger has it.
func named(id string, t *record.Trial, attempt int) messaging.AttemptID {
	return messaging.AttemptID{Study: id, Trial: t.Number, Attempt: attempt, Nonce: t.Attempts[attempt-1].Nonce}
}
