package natsbus_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// broker is a nats-server in this process, without a listener.
type broker struct {
	tb      testing.TB
	running atomic.Pointer[server.Server]
	dir     string
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
	b.running.Store(s)
}

func (b *broker) stop() {
	s := b.running.Load()
	s.Shutdown()
	s.WaitForShutdown()
}

// InProcessConn lets connections find the server that runs now.
func (b *broker) InProcessConn() (net.Conn, error) { return b.running.Load().InProcessConn() }

func (b *broker) connect(name string) *nats.Conn {
	b.tb.Helper()
	nc, err := nats.Connect("", append(natsbus.ConnectOptions(name), nats.InProcessServer(b))...)
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
	w, err := natsbus.NewWorker(b.connect(name), natsbus.WorkerOptions{Name: name, Pool: pool})
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
