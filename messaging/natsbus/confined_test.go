package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

const solo = pool + ".solo"

// installation is NATS with accounts for the pools default and gpu, and for the
// worker default.solo.
type installation struct {
	t   *testing.T
	url string // of all servers, separated by commas
	js  jetstream.JetStream
	l   *natsbus.Leader
}

// install starts an installation of one server; change may alter its configuration.
func install(ctx context.Context, t *testing.T, change func(string) string) *installation {
	t.Helper()
	return installCluster(ctx, t, 1, change)
}

func installCluster(ctx context.Context, t *testing.T, servers int, change func(string) string) *installation {
	t.Helper()
	text := accounts(t, natsbus.Accounts{Pools: []string{pool, "gpu"}, Workers: []string{solo}})
	if change != nil {
		changed := change(text)
		if changed == text {
			t.Fatal("the configuration is not changed")
		}
		text = changed
	}
	var urls []string
	for _, s := range testenv.StartNATSCluster(t, servers, testenv.NATSConfig{Extra: text}) {
		urls = append(urls, s.URL)
	}
	i := &installation{t: t, url: strings.Join(urls, ",")}
	nc := i.connect(natsbus.UserCoordinator, natsbus.ConnectOptions("coordinator")...)
	var err error
	i.js, err = jetstream.New(nc)
	must(t, err)
	i.l, err = natsbus.NewLeader(nc, natsbus.LeaderOptions{Replicas: servers})
	must(t, err)
	closeAtEnd(t, i.l)
	eventually(ctx, t, "set up", func() error { return i.l.Setup(ctx, []string{pool, "gpu"}) })
	must(t, i.l.Fence(ctx, 1))
	return i
}

func (i *installation) connect(user string, o ...nats.Option) *nats.Conn {
	i.t.Helper()
	nc, err := nats.Connect(i.url, append(o, nats.UserInfo(user, "password of "+user))...)
	must(i.t, err)
	i.t.Cleanup(nc.Close)
	return nc
}

// subjects returns the subjects of a stream's messages with their counts; nil if there
// is no such stream.
func (i *installation) subjects(ctx context.Context, stream string) map[string]uint64 {
	i.t.Helper()
	s, err := i.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // a trick has deleted it
	}
	must(i.t, err)
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	must(i.t, err)
	return info.State.Subjects
}

// A pool's password permits only its own pool's work.
func TestWorkersAreConfined(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	i := install(ctx, t, nil)
	for _, user := range []string{natsbus.PoolUser(pool), natsbus.WorkerUser(solo)} {
		publish := []string{
			"$JS.API.INFO", "$JS.API.STREAM.LIST", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.FANTASIA_RESULT",
			"$JS.API.STREAM.CREATE.OWN", "$JS.API.STREAM.UPDATE.FANTASIA_CLAIM", "$JS.API.STREAM.DELETE.FANTASIA_CLAIM",
			"$JS.API.STREAM.PURGE.FANTASIA_CLAIM", "$JS.API.STREAM.MSG.GET.FANTASIA_RESULT", "$JS.API.STREAM.MSG.DELETE.FANTASIA_RESULT",
			"$JS.API.STREAM.SNAPSHOT.FANTASIA_RESULT", "$JS.API.DIRECT.GET.FANTASIA_RESULT", "$JS.API.DIRECT.GET.FANTASIA_RESULT.fantasia.>",
			"$JS.API.CONSUMER.CREATE.FANTASIA_ASSIGN", "$JS.API.CONSUMER.CREATE.FANTASIA_RESULT.own.>",
			"$JS.API.CONSUMER.DURABLE.CREATE.FANTASIA_ASSIGN.own",
			"$JS.API.CONSUMER.DELETE.FANTASIA_ASSIGN.pool_0_default", "$JS.API.CONSUMER.PAUSE.FANTASIA_ASSIGN.pool_0_default",
			"$JS.API.CONSUMER.INFO.FANTASIA_ASSIGN.pool_0_gpu", "$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_gpu",
			"$JS.ACK.FANTASIA_ASSIGN.pool_0_gpu.1.1.1.1.0", "$JS.ACK.FANTASIA_CLAIM.any.1.1.1.1.0",
			"fantasia.assign.0.default.s.1.1", "fantasia.fence.0", "fantasia.claim.0.gpu.s.1.1",
			"fantasia.result.0.gpu.w.s.1.1", "fantasia.result.0.w.s.1.1", "fantasia.heartbeat.0.gpu.w", "fantasia.heartbeat.0.w",
			"fantasia.control.0.default.w", "fantasia.log.0.gpu.w", "fantasia.log.0.w", "fantasia.dlq.0.gpu.w", "fantasia.dlq.0.leader",
			"_INBOX.gpu.w.x", "_INBOX.default.w.x", "_INBOX_coordinator.x", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.COORDINATORS.CONNZ", "_R_.x.y",
		}
		subscribe := []string{
			">", "*.>", "fantasia.>", "fantasia.assign.>", "fantasia.assign.0.default.>", "fantasia.claim.>", "fantasia.result.>",
			"fantasia.metric.>",
			"fantasia.heartbeat.>", "fantasia.control.>", "fantasia.control.0.*.*", "fantasia.control.0.gpu.w", "fantasia.log.>",
			"fantasia.log.0.default.w", "fantasia.dlq.>",
			"_INBOX.>", "_INBOX.*.*.>", "_INBOX.gpu.w.>", "_INBOX.default.>", "_INBOX_coordinator.>", "$JS.>", "$JS.EVENT.>", "$SYS.>", "_R_.>",
		}
		if user == natsbus.WorkerUser(solo) {
			publish = append(publish, "fantasia.result.0.default.w.s.1.1", "fantasia.heartbeat.0.default.w", "fantasia.log.0.default.w",
				"fantasia.dlq.0.default.w")
			subscribe = append(subscribe, "_INBOX.default.*.>", "_INBOX.default.w.>", "fantasia.control.0.default.*", "fantasia.control.0.default.w")
		}
		refusals := make(chan error, 64)
		nc := i.connect(user, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
		refused := func(what, subject string) {
			t.Helper()
			must(t, nc.FlushWithContext(ctx))
			select {
			case err := <-refusals:
				if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), fmt.Sprintf("%q", subject)) {
					t.Errorf("%s: %s %s: %v, want a permissions violation", user, what, subject, err)
				}
			case <-time.After(time.Second):
				t.Errorf("%s may %s %s", user, what, subject)
			}
		}
		for _, subject := range publish {
			must(t, nc.Publish(subject, nil))
			refused("publish to", subject)
		}
		for _, subject := range subscribe {
			_, err := nc.SubscribeSync(subject)
			must(t, err)
			refused("subscribe to", subject)
		}
	}
	if _, err := nats.Connect(i.url); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("connect without a user: %v, want a refusal", err)
	}
}

// open removes the users' permissions, which leaves what the accounts permit.
func open(text string) string {
	var lines []string
	inside := false
	for line := range strings.Lines(text) {
		if head, _, ok := strings.Cut(line, ", permissions {"); ok {
			line, inside = head+" }\n", true
			lines = append(lines, line)
			continue
		}
		if !inside {
			lines = append(lines, line)
		}
		if strings.TrimSpace(line) == "} }" {
			inside = false
		}
	}
	return strings.Join(lines, "")
}

// The accounts alone, without the users' permissions, keep the streams apart.
func TestAccountsHoldWithoutPermissions(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	i := install(ctx, t, open)
	nc := i.connect(natsbus.PoolUser(pool))
	js, err := jetstream.New(nc)
	must(t, err)
	calls := map[string]func() error{
		"create a stream": func() error {
			_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "OWN", Subjects: []string{"own"}})
			return err
		},
		"read a stream": func() error {
			s, err := js.Stream(ctx, "FANTASIA_RESULT")
			if err == nil {
				_, err = s.GetMsg(ctx, 1)
			}
			return err
		},
		"delete a stream": func() error { return js.DeleteStream(ctx, "FANTASIA_RESULT") },
		"create a consumer": func() error {
			_, err := js.CreateConsumer(ctx, "FANTASIA_ASSIGN", jetstream.ConsumerConfig{})
			return err
		},
		"delete a consumer": func() error { return js.DeleteConsumer(ctx, "FANTASIA_ASSIGN", "pool_0_gpu") },
	}
	for what, call := range calls {
		if err := call(); !errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
			t.Errorf("%s: %v, want that JetStream is not enabled for the account", what, err)
		}
	}
	sub, err := nc.SubscribeSync("fantasia.>")
	must(t, err)
	must(t, nc.FlushWithContext(ctx))
	must(t, i.l.Assign(ctx, []*messaging.Assignment{assignment(1)}))
	must(t, i.l.Control(ctx, &messaging.Control{Kind: messaging.ControlAvoid, Worker: solo, AttemptID: messaging.AttemptID{Study: "s"}}))
	if m, err := sub.NextMsgWithContext(ctx); err != nil || m.Subject != "fantasia.control.0.default.solo" {
		t.Errorf("heard %+v, %v, want nothing but the control message", m, err)
	}
}
