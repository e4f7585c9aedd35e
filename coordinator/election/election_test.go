package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "/test/leader/0"

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func embeddedClient(t testing.TB) *clientv3.Client {
	t.Helper()
	e, err := embedded.StartEtcd(testContext(t), embedded.EtcdOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := e.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// replica is a candidate that runs until it is stopped, and tells its terms.
type replica struct {
	*Candidate
	began chan *Term
	// ended gets why each term ended.
	ended chan error
	// quit ends a term with what it is given.
	quit chan error
	stop func()
}

func newReplica(c *clientv3.Client, name string) *replica {
	return &replica{
		Candidate: &Candidate{Client: c, Key: key, Value: name, TTL: MinTTL},
		began:     make(chan *Term, 100), ended: make(chan error, 100), quit: make(chan error),
	}
}

func (r *replica) run(t testing.TB) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, func(ctx context.Context, term *Term) error {
			r.began <- term
			defer func() { r.ended <- context.Cause(ctx) }()
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case err := <-r.quit:
				return err
			}
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v; want its context's cause", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain until %s", what)
		panic("unreachable")
	}
}

func TestOneLeadsAndResigningHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	c := embeddedClient(t)
	if _, _, err := Leader(testContext(t), c, key); !errors.Is(err, ErrNoLeader) {
		t.Errorf("before anyone ran: %v; want ErrNoLeader", err)
	}
	a := newReplica(c, "a")
	a.TTL = 20 * time.Second
	a.run(t)
	first := receive(t, a.began, "a leads")
	b := newReplica(c, "b").run(t)
	value, epoch, err := Leader(testContext(t), c, key)
	if err != nil || value != "a" || epoch != first.Epoch || !first.lasts() {
		t.Errorf("leader %q of epoch %d, %v; want a of %d", value, epoch, err, first.Epoch)
	}
	resigned := time.Now()
	a.stop()
	second := receive(t, b.began, "b leads")
	took := time.Since(resigned)
	t.Logf("handed over in %s", took)
	if second.Epoch <= first.Epoch || first.lasts() {
		t.Errorf("epoch %d after %d, the first still held: %v", second.Epoch, first.Epoch, first.lasts())
	}
	if took > a.TTL/2 {
		t.Errorf("handing over took %s; it must not wait for the lease of %s", took, a.TTL)
	}
}

func TestErrorOfTheLeaderGivesOthersTheirTurn(t *testing.T) {
	t.Parallel()
	c := embeddedClient(t)
	a := newReplica(c, "a").run(t)
	receive(t, a.began, "a leads")
	b := newReplica(c, "b").run(t)
	awaitWatcher(t, c)
	a.quit <- errors.New("no messages")
	receive(t, b.began, "b leads")
}

// awaitWatcher waits until a second candidate has had the time to see the key.
func awaitWatcher(t testing.TB, c *clientv3.Client) {
	t.Helper()
	for range 20 { // each is a round trip; the candidate needs two
		if _, err := c.Get(testContext(t), key); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnfitCandidatesDoNotLead(t *testing.T) {
	t.Parallel()
	c := embeddedClient(t)
	asked, fit := make(chan struct{}, 100), make(chan struct{})
	a := newReplica(c, "a")
	a.Healthy = func(context.Context) error {
		asked <- struct{}{}
		select {
		case <-fit:
			return nil
		default:
			return errors.New("NATS does not answer")
		}
	}
	a.run(t)
	receive(t, asked, "the candidate was asked")
	began := time.Now()
	for range 5 {
		receive(t, asked, "the candidate was asked again")
	}
	// Five pauses of at most firstPause. If they doubled, they would take 5.75 s or more.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("five pauses took %v; want them not to grow while the candidate is not fit", took)
	}
	if _, _, err := Leader(testContext(t), c, key); !errors.Is(err, ErrNoLeader) {
		t.Errorf("an unfit candidate: %v; want ErrNoLeader", err)
	}
	close(fit)
	receive(t, a.began, "a leads")
}

// The lease is lost between the steps of an election: nobody may lead by it.
func TestLeaseLostWhileCampaigning(t *testing.T) {
	t.Parallel()
	for step, hook := range map[string]func(h *hooks, f func(clientv3.LeaseID)){
		"before the key is made": func(h *hooks, f func(clientv3.LeaseID)) { h.granted = f },
		"after the key is made":  func(h *hooks, f func(clientv3.LeaseID)) { h.created = f },
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			c := embeddedClient(t)
			a := newReplica(c, "a")
			lost := make(chan clientv3.LeaseID, 1)
			var once sync.Once
			hook(&a.hooks, func(id clientv3.LeaseID) {
				once.Do(func() {
					if _, err := c.Revoke(testContext(t), id); err != nil {
						t.Error(err)
					}
					lost <- id
				})
			})
			a.run(t)
			phantom := receive(t, lost, "the lease was taken away")
			term := receive(t, a.began, "a leads in a second try")
			if term.Lease == phantom {
				t.Fatalf("a leads by the lease %x that was revoked", phantom)
			}
			_, epoch, err := Leader(testContext(t), c, key)
			if err != nil || epoch != term.Epoch {
				t.Errorf("etcd knows epoch %d, %v; the leader %d", epoch, err, term.Epoch)
			}
		})
	}
}

// Somebody waits for the leader, every lease is taken away, the leader stops:
// there is one leader, and it is the one that etcd knows.
func TestWaitingCandidateIsNoPhantom(t *testing.T) {
	t.Parallel()
	c := embeddedClient(t)
	a := newReplica(c, "a").run(t)
	receive(t, a.began, "a leads")
	waiting := newReplica(c, "b").run(t)
	awaitWatcher(t, c)
	leases, err := c.Leases(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if _, err := c.Revoke(testContext(t), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(leases.Leases) != 1 {
		t.Errorf("%d leases; want the leader's alone", len(leases.Leases))
	}
	term := receive(t, waiting.began, "the other leads")
	if _, epoch, err := Leader(testContext(t), c, key); err != nil || epoch != term.Epoch {
		t.Errorf("etcd knows epoch %d, %v; the leader %d", epoch, err, term.Epoch)
	}
}

func TestTermEndsWithItsKey(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(c *clientv3.Client, term *Term) error{
		"lease revoked": func(c *clientv3.Client, term *Term) error {
			_, err := c.Revoke(context.Background(), term.Lease)
			return err
		},
		"key deleted": func(c *clientv3.Client, _ *Term) error {
			_, err := c.Delete(context.Background(), key)
			return err
		},
		"cleared": func(c *clientv3.Client, _ *Term) error { return Clear(context.Background(), c, key) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := embeddedClient(t)
			a := newReplica(c, "a").run(t)
			term := receive(t, a.began, "a leads")
			if err := end(c, term); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, a.ended, "the term ends"); !errors.Is(err, ErrLost) {
				t.Errorf("the term ended with %v; want ErrLost", err)
			}
		})
	}
}

func TestClearFreesADeadLeadersKey(t *testing.T) {
	t.Parallel()
	c := embeddedClient(t)
	ctx := testContext(t)
	if err := Clear(ctx, c, key); err != nil {
		t.Errorf("clear where nobody leads: %v", err)
	}
	dead, err := c.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, key, "dead", clientv3.WithLease(dead.ID)); err != nil {
		t.Fatal(err)
	}
	if err := Clear(ctx, c, key); err != nil {
		t.Fatal(err)
	}
	receive(t, newReplica(c, "a").run(t).began, "a leads")
}

func TestCandidateIsChecked(t *testing.T) {
	t.Parallel()
	c := &clientv3.Client{}
	for name, candidate := range map[string]*Candidate{
		"no client":   {Key: key},
		"no key":      {Client: c},
		"short TTL":   {Client: c, Key: key, TTL: time.Second},
		"crooked TTL": {Client: c, Key: key, TTL: 2500 * time.Millisecond},
	} {
		if err := candidate.Run(t.Context(), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// etcd hangs: the leader stops before its lease can have ended; with the fence
// switched off it would go on.
func TestSelfFence(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint("off=", off), func(t *testing.T) {
			t.Parallel()
			e := testenv.StartEtcd(t)
			a := newReplica(testenv.EtcdClient(t, e.URL), "a")
			a.TTL = 3 * time.Second
			a.hooks.noSelfFence = off
			a.run(t)
			term := receive(t, a.began, "a leads")
			paused := time.Now()
			e.Pause()
			defer e.Resume()
			var err error
			select {
			case err = <-a.ended:
			case <-time.After(time.Until(paused.Add(a.TTL))):
			}
			if fenced := err != nil; fenced == off {
				t.Fatalf("stopped within the TTL: %v (%v); want %v", fenced, err, !off)
			}
			if off {
				return
			}
			took := time.Since(paused)
			t.Logf("fenced itself %s after etcd hung; TTL %s", took, a.TTL)
			if !errors.Is(err, ErrSelfFenced) || term.lasts() {
				t.Errorf("the term ended with %v, held: %v; want ErrSelfFenced", err, term.lasts())
			}
		})
	}
}

// The leader's connection is cut, so that it cannot even resign: the other leads
// once the lease has ended, and not before the first has stopped.
func TestTakeoverAfterACut(t *testing.T) {
	t.Parallel()
	e := testenv.StartEtcd(t)
	proxy := testenv.StartProxy(t, e.URL)
	a := newReplica(testenv.EtcdClient(t, "http://"+proxy.Addr), "a").run(t)
	receive(t, a.began, "a leads")
	b := newReplica(testenv.EtcdClient(t, e.URL), "b").run(t)
	cut := time.Now()
	proxy.Hold()
	term := receive(t, b.began, "b leads")
	t.Logf("taken over %s after the cut; TTL %s", time.Since(cut), b.TTL)
	select {
	case err := <-a.ended:
		t.Logf("a has stopped: %v", err)
	default:
		t.Error("b leads and a has not stopped")
	}
	if since := time.Since(cut); since < b.TTL-b.TTL/6-100*time.Millisecond {
		t.Errorf("taken over after %s; the lease of %s had not ended", since, b.TTL)
	}
	proxy.Heal()
	if _, epoch, err := Leader(testContext(t), b.Client, key); err != nil || epoch != term.Epoch {
		t.Errorf("after healing etcd knows epoch %d, %v; want %d", epoch, err, term.Epoch)
	}
}

// The etcd server is killed and comes back within the lease: leadership lasts.
func TestLeadershipSurvivesARestartOfEtcd(t *testing.T) {
	t.Parallel()
	e := testenv.StartEtcd(t)
	a := newReplica(testenv.EtcdClient(t, e.URL), "a")
	a.TTL = 10 * time.Second
	a.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	a.run(t)
	term := receive(t, a.began, "a leads")
	before := term.deadline()
	e.Kill()
	e.Restart()
	testenv.Eventually(t, 20*time.Second, func(context.Context) error {
		if !term.deadline().After(before.Add(time.Second)) {
			return errors.New("the lease was not renewed")
		}
		return nil
	})
	if !term.lasts() {
		t.Error("the term ended though etcd was back in time")
	}
}

// lasts reports whether the term lasts, by this process's clock.
func (t *Term) lasts() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ctx.Err() == nil && time.Now().Before(t.until)
}
