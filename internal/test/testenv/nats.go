package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// NATSConfig configures nats-server processes; the zero value is valid.
type NATSConfig struct {
	// SyncAlways syncs each write to disk before it is acknowledged.
	SyncAlways bool
	// Extra is appended to the server's configuration file, for example accounts.
	Extra string
}

// NATS is a nats-server with JetStream in a process of its own.
type NATS struct {
	*Process
	// URL is the address for clients, Monitor that of the monitoring port.
	URL, Monitor string
	// StoreDir is where JetStream keeps its files.
	StoreDir string
}

// StartNATS starts one nats-server and waits until it serves.
func StartNATS(t testing.TB, c NATSConfig) *NATS {
	t.Helper()
	return StartNATSCluster(t, 1, c)[0]
}

// StartNATSCluster starts a cluster of n nats-servers and waits until JetStream
// serves on all of them.
func StartNATSCluster(t testing.TB, n int, c NATSConfig) []*NATS {
	t.Helper()
	path, dir := Build(t, natsModule), t.TempDir()
	routes := make([]string, n)
	for i := range n {
		routes[i] = fmt.Sprintf("nats://127.0.0.1:%d", FreePort(t))
	}
	out := make([]*NATS, n)
	for i := range n {
		name, port, monitor := fmt.Sprintf("nats-%d", i), FreePort(t), FreePort(t)
		store := filepath.Join(dir, name)
		text := natsConfig(name, store, port, monitor, c)
		if n > 1 {
			text += fmt.Sprintf("cluster { name: test, listen: %q, routes: [%s] }\n",
				strings.TrimPrefix(routes[i], "nats://"), strings.Join(routes, ", "))
		}
		file := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ready := answersOK(fmt.Sprintf("http://127.0.0.1:%d/healthz", monitor))
		out[i] = &NATS{Process: prepare(t, path, []string{"-c", file}, nil, ready), URL: fmt.Sprintf("nats://127.0.0.1:%d", port), StoreDir: store,
			Monitor: fmt.Sprintf("http://127.0.0.1:%d", monitor)}
		out[i].name = name
		out[i].start()
	}
	for _, s := range out {
		s.AwaitReady()
	}
	return out
}

func natsConfig(name, store string, port, monitor int, c NATSConfig) string {
	interval := "1s"
	if c.SyncAlways {
		interval = "always"
	}
	return fmt.Sprintf("server_name: %s\nlisten: \"127.0.0.1:%d\"\nhttp: \"127.0.0.1:%d\"\n"+
		"jetstream { store_dir: %q, sync_interval: %s }\n%s\n", name, port, monitor, store, interval, c.Extra)
}

// Connect returns a connection to the server; the test's end closes it.
func (n *NATS) Connect(opts ...nats.Option) *nats.Conn {
	n.t.Helper()
	c, err := nats.Connect(n.URL, opts...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Close)
	return c
}
