package natsbus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/messagingtest"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is a nats-server in this process, without a listener.
type broker struct {
	tb     testing.TB
	server *server.Server
	dir    string
}

func startBroker(tb testing.TB) *broker {
	b := &broker{tb: tb, dir: tb.TempDir()}
	b.start()
	tb.Cleanup(func() { b.stop() })
	return b
}

func (b *broker) start() {
	b.tb.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "test", DontListen: true, JetStream: true, StoreDir: b.dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		b.tb.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		b.tb.Fatal("the server is not ready")
	}
	b.server = s
}

func (b *broker) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *broker) connect(name string) *nats.Conn {
	b.tb.Helper()
	nc, err := nats.Connect("", append(natsbus.ConnectOptions(name), nats.InProcessServer(b.server))...)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(nc.Close)
	return nc
}

// js is an administrator's connection.
func (b *broker) js() jetstream.JetStream {
	b.tb.Helper()
	js, err := jetstream.New(b.connect("administrator"))
	if err != nil {
		b.tb.Fatal(err)
	}
	return js
}

func (b *broker) leader(o natsbus.LeaderOptions) *natsbus.Leader {
	b.tb.Helper()
	l, err := natsbus.NewLeader(b.connect("coordinator"), o)
	if err != nil {
		b.tb.Fatal(err)
	}
	closeAtEnd(b.tb, l)
	return l
}

func (b *broker) worker(name, pool string) *natsbus.Worker {
	b.tb.Helper()
	w, err := natsbus.NewWorker(b.connect(name), natsbus.WorkerOptions{Name: name, Pool: pool, Instance: "i1"})
	if err != nil {
		b.tb.Fatal(err)
	}
	closeAtEnd(b.tb, w)
	return w
}

func closeAtEnd(tb testing.TB, c interface{ Close() error }) {
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
}

// names of the streams, as an administrator sees them.
var names = map[messaging.Stream]string{
	messaging.StreamClaim:  "FANTASIA_CLAIM",
	messaging.StreamResult: "FANTASIA_RESULT",
}

func TestConformance(t *testing.T) {
	messagingtest.Run(t, func(t *testing.T) *messagingtest.Bus {
		b := startBroker(t)
		js := b.js()
		options := natsbus.LeaderOptions{AckWait: 500 * time.Millisecond, CheckInterval: 100 * time.Millisecond}
		return &messagingtest.Bus{
			Leader:  func() messaging.Leader { return b.leader(options) },
			Worker:  func(name, pool string) messaging.Worker { return b.worker(name, pool) },
			AckWait: options.AckWait,
			Inject: func(subject string, raw []byte) {
				if _, err := js.Publish(t.Context(), subject, raw); err != nil {
					t.Fatal(err)
				}
			},
			Recreate: func(s messaging.Stream) {
				if err := js.DeleteStream(t.Context(), names[s]); err != nil {
					t.Fatal(err)
				}
				if err := b.leader(options).Setup(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			},
			DeadLetters: func() [][]byte { return deadLetters(t, js) },
		}
	})
}

// deadLetters reads the dead-letter queue.
func deadLetters(t *testing.T, js jetstream.JetStream) (raws [][]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, "FANTASIA_DLQ")
	if err != nil {
		t.Fatal(err)
	}
	for sequence := uint64(1); sequence <= s.CachedInfo().State.LastSeq; sequence++ {
		m, err := s.GetMsg(ctx, sequence)
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, m.Data)
	}
	return raws
}
