package natsbus_test

import (
	"net"
	"os"
	"path/filepath"
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
	// accounts is the accounts part of its configuration file; empty for a single
	// account for everyone.
	accounts string
}

func startBroker(tb testing.TB) *broker { return startBrokerWith(tb, "") }

func startBrokerWith(tb testing.TB, accounts string) *broker {
	b := &broker{tb: tb, dir: tb.TempDir(), accounts: accounts}
	b.start()
	tb.Cleanup(func() { b.stop() })
	return b
}

// options returns the server's options, including those of its configuration file.
func (b *broker) options() *server.Options {
	b.tb.Helper()
	file := filepath.Join(b.dir, "accounts.conf")
	must(b.tb, os.WriteFile(file, []byte(b.accounts), 0o600))
	o, err := server.ProcessConfigFile(file)
	must(b.tb, err)
	o.ServerName, o.DontListen, o.JetStream, o.StoreDir, o.NoSigs, o.NoLog = "test", true, true, b.dir, true, true
	return o
}

func (b *broker) start() {
	b.tb.Helper()
	s, err := server.NewServer(b.options())
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

// InProcessConn connects to the server that is running.
func (b *broker) InProcessConn() (net.Conn, error) { return b.running.Load().InProcessConn() }

func (b *broker) connect(name string) *nats.Conn {
	b.tb.Helper()
	return b.connectWith(b.credentials(natsbus.UserCoordinator, natsbus.ConnectOptions(name)))
}

// credentials adds a user's password if there are accounts: its own name.
func (b *broker) credentials(user string, o []nats.Option) []nats.Option {
	if b.accounts == "" {
		return o
	}
	return append(o, nats.UserInfo(user, "password of "+user))
}

func (b *broker) connectWith(o []nats.Option) *nats.Conn {
	b.tb.Helper()
	nc, err := nats.Connect("", append(o, nats.InProcessServer(b))...)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(nc.Close)
	return nc
}

// js returns an administrator's connection.
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
	nc := b.connectWith(b.credentials(natsbus.PoolUser(pool), natsbus.WorkerConnectOptions(pool, name)))
	w, err := natsbus.NewWorker(nc, natsbus.WorkerOptions{Name: name, Pool: pool})
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
