package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// tricks publishes everything that a pool's worker may publish, with every harmful
// subject as the reply subject.
func tricks(ctx context.Context, i *installation) {
	i.t.Helper()
	replies := []string{
		"fantasia.result.0.gpu.w.victim.1.1", "fantasia.result.0.default.w.victim.1.1", "fantasia.claim.0.gpu.victim.1.1",
		"fantasia.claim.0.default.victim.1.1",
		"fantasia.assign.0.gpu.victim.1.1", "fantasia.assign.0.default.victim.1.1", "fantasia.fence.0", "fantasia.metric.0.victim.1.1",
		"fantasia.dlq.0.gpu.w", "fantasia.dlq.0.leader", "fantasia.heartbeat.0.gpu.w", "fantasia.heartbeat.0.default.w",
		"$JS.API.STREAM.DELETE.FANTASIA_METRIC", "$JS.API.STREAM.PURGE.FANTASIA_METRIC", "$JS.API.CONSUMER.DELETE.FANTASIA_ASSIGN.pool_0_gpu",
		"$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_gpu", "$JS.ACK.FANTASIA_ASSIGN.pool_0_gpu.1.%d.1.1.0", "_R_.a.b",
		"_GR_.a.b.fantasia.fence.0",
	}
	s, err := i.js.Consumer(ctx, "FANTASIA_ASSIGN", "pool_0_gpu")
	must(i.t, err)
	gpu := s.CachedInfo().Delivered.Stream
	nc := i.attacker()
	n := 0
	for _, reply := range replies {
		if strings.Contains(reply, "%d") {
			reply = fmt.Sprintf(reply, gpu)
		}
		for subject, body := range map[string]string{
			"fantasia.claim.0.default.own.%d.1": "{}", "fantasia.result.0.default.attacker.own.%d.1": "{}", "fantasia.metric.0.own.%d.1": "{}",
			"fantasia.dlq.0.default.attacker": "{}", "fantasia.heartbeat.0.default.attacker": "{}", "fantasia.log.0.default.attacker": "{}",
			"$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_default":  `{"batch":1,"expires":100000000}`,
			"$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_default ": `{"batch":1,"no_wait":true}`,
			"$JS.ACK.FANTASIA_ASSIGN.pool_0_default.1.%d.1.1.0":         "+WPI", "$JS.ACK.FANTASIA_ASSIGN.pool_0_default.9.%d.9.1.0": "+NXT",
		} {
			n++
			if strings.Contains(subject, "%d") {
				subject = fmt.Sprintf(subject, n)
			}
			must(i.t, nc.PublishRequest(strings.TrimSpace(subject), reply, []byte(body)))
			must(i.t, nc.FlushWithContext(ctx))
		}
	}
}

// foreign returns the subjects of all streams that tricks has no right to, with the
// numbers of their messages.
func (i *installation) foreign(ctx context.Context) map[string]uint64 {
	i.t.Helper()
	found := map[string]uint64{}
	for _, stream := range []string{"ASSIGN", "CLAIM", "RESULT", "METRIC", "DLQ"} {
		for subject, count := range i.subjects(ctx, "FANTASIA_"+stream) {
			if !strings.Contains(subject, ".own.") && !strings.HasPrefix(subject, "fantasia.dlq.0.default.") {
				found[subject] += count
			}
		}
	}
	return found
}

// arrange queues assignments for the attacker and leaves one with a worker of the other
// pool. It returns the resulting contents of the streams.
func (i *installation) arrange(ctx context.Context) map[string]uint64 {
	i.t.Helper()
	var as []*messaging.Assignment
	for trial := range 40 {
		as = append(as, assignment(trial+1))
	}
	gpu := assignment(99)
	gpu.Pool = "gpu"
	must(i.t, i.l.Assign(ctx, append(as, gpu)))
	w, err := natsbus.NewWorker(i.connect(natsbus.PoolUser("gpu"), natsbus.WorkerConnectOptions("gpu", "gpu.w")...),
		natsbus.WorkerOptions{Name: "gpu.w", Pool: "gpu"})
	must(i.t, err)
	closeAtEnd(i.t, w)
	must(i.t, w.PublishMeasurement(ctx, &messaging.Measurement{AttemptID: attempt(99), Worker: "gpu.w", Metrics: map[string]float64{"x": 1}}))
	_, err = w.Fetch(ctx)
	must(i.t, err)
	return i.foreign(ctx)
}

// No reply subject makes an answer reach a stream, another pool's assignment or another
// worker's name.
func TestRepliesReachNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(string) string{"with permissions": nil, "without permissions": open} {
		t.Run(name, func(t *testing.T) {
			ctx := patient(t)
			i := install(ctx, t, change)
			before := i.arrange(ctx)
			beats, err := i.connect(natsbus.UserCoordinator).SubscribeSync("fantasia.heartbeat.0.*.*")
			must(t, err)
			tricks(ctx, i)
			must(t, i.flush(ctx))
			if diff := cmp.Diff(before, i.foreign(ctx)); diff != "" {
				t.Errorf("the streams (-before +after):\n%s", diff)
			}
			c, err := i.js.Consumer(ctx, "FANTASIA_ASSIGN", "pool_0_gpu")
			must(t, err)
			if n := c.CachedInfo().NumAckPending; n != 1 {
				t.Errorf("the other pool has %d assignments without an answer, want 1", n)
			}
			for {
				m, err := beats.NextMsg(50 * time.Millisecond)
				if err != nil {
					break
				}
				if m.Subject != "fantasia.heartbeat.0.default.attacker" {
					t.Errorf("a heartbeat came on %s: %s", m.Subject, m.Data)
				}
			}
		})
	}
}

// flush waits until the server has done what it was asked to: the attacker's last
// request is answered.
func (i *installation) flush(ctx context.Context) error {
	i.t.Helper()
	nc := i.attacker()
	for subject, body := range map[string]string{
		"fantasia.claim.0.default.own.100000.1": "", "fantasia.result.0.default.attacker.own.100000.1": "", "fantasia.metric.0.own.100000.1": "",
		"$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_default": `{"batch":1,"no_wait":true}`,
	} {
		if _, err := nc.RequestWithContext(ctx, subject, []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

// attacker connects with the pool's password. It expects that much is refused.
func (i *installation) attacker() *nats.Conn {
	i.t.Helper()
	return i.connect(natsbus.PoolUser(pool), append(natsbus.WorkerConnectOptions(pool, "attacker"),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
}

// On three servers, where a worker's server is often another than its stream's: the
// workers of each server do their work, and tricks reach nothing.
func TestAccountsInACluster(t *testing.T) {
	t.Parallel()
	const n = 60
	ctx := patient(t)
	i := installCluster(ctx, t, 3, nil)
	var urls = strings.Split(i.url, ",")
	as := make([]*messaging.Assignment, n)
	for k := range as {
		as[k] = assignment(k + 1)
	}
	must(t, i.l.Assign(ctx, as))
	var wg sync.WaitGroup
	var done atomic.Int64
	for k, url := range urls {
		name := fmt.Sprintf("%s.w%d", pool, k)
		nc, err := nats.Connect(url,
			append(natsbus.WorkerConnectOptions(pool, name), nats.UserInfo(natsbus.PoolUser(pool), "password of "+natsbus.PoolUser(pool)))...)
		must(t, err)
		t.Cleanup(nc.Close)
		w, err := natsbus.NewWorker(nc, natsbus.WorkerOptions{Name: name, Pool: pool})
		must(t, err)
		closeAtEnd(t, w)
		wg.Go(func() {
			for done.Load() < n {
				short, cancel := context.WithTimeout(ctx, time.Second)
				d, err := w.Fetch(short)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
					continue // the others have the rest
				}
				if err == nil {
					trial := d.Assignment().Trial
					err = errors.Join(w.Claim(ctx, fmt.Sprint(trial), claim(trial, name)), d.Ack(ctx), w.PublishResult(ctx, result(trial, name)))
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	r, err := i.l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	must(t, err)
	defer r.Close()
	all(ctx, t, r, n)

	before := i.arrange(ctx)
	for k := range urls {
		i.url = urls[k]
		tricks(ctx, i)
		must(t, i.flush(ctx))
	}
	if diff := cmp.Diff(before, i.foreign(ctx)); diff != "" {
		t.Errorf("the streams (-before +after):\n%s", diff)
	}
}

// oneAccount puts everybody into the coordinators' account, with only the users'
// permissions.
func oneAccount(text string) string {
	head, rest, _ := strings.Cut(text, "    ]\n    exports [")
	_, rest, _ = strings.Cut(rest, "users [\n")
	users, _, _ := strings.Cut(rest, "    ]\n    imports [")
	return head + users + "    ]\n  }\n}\n"
}

const (
	oneExport    = `{ service: ">", response_type: stream, response_threshold: "30s", accounts: [WORKERS] }`
	victim       = "fantasia.result.0.gpu.w.victim.1.1"
	importVictim = `    imports [` + "\n" + `{ service: { account: COORDINATORS, subject: "` + victim + `" } }` + "\n"
)

// importLiteral imports one more subject, which has no wildcard.
func importLiteral(text string) string {
	return strings.Replace(text, "    imports [\n", importVictim, 1)
}

// severalExports exports each kind of subject by itself, and is importLiteral.
func severalExports(text string) string {
	var several strings.Builder
	for _, subject := range []string{"$JS.>", "fantasia.claim.>", "fantasia.result.>", "fantasia.metric.>", "fantasia.dlq.>",
		"fantasia.heartbeat.>", "fantasia.log.>"} {
		fmt.Fprintf(&several, "{ service: %q, response_type: stream, response_threshold: \"30s\" }\n", subject)
	}
	return importLiteral(strings.Replace(text, oneExport, several.String(), 1))
}

// What the tricks reach in other configurations. Permissions alone do not stop them.
// With two accounts, the single export stops them even if an import has no wildcard.
func TestRepliesReachStreamsOtherwise(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		change  func(string) string
		reached bool
	}{
		{"one account", oneAccount, true},
		{"several exports", severalExports, true},
		{"one export", importLiteral, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := patient(t)
			i := install(ctx, t, test.change)
			i.arrange(ctx)
			tricks(ctx, i)
			// A trick may have deleted a stream, which then does not answer.
			if err := i.flush(ctx); err != nil && !errors.Is(err, nats.ErrNoResponders) {
				t.Fatal(err)
			}
			if after := i.foreign(ctx); (after[victim] > 0) != test.reached {
				t.Errorf("another's result was written: %t, want %t; streams: %v", after[victim] > 0, test.reached, after)
			}
		})
	}
}
