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
	// Route returns the address, host:port, at which a server of a cluster reaches
	// another one that listens at an address, for example a proxy in between; nil if they
	// connect directly. The servers are numbered from 0.
	Route func(from, to int, address string) string
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
		routes[i] = fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	}
	out := make([]*NATS, n)
	for i := range n {
		name, port, monitor := fmt.Sprintf("nats-%d", i), FreePort(t), FreePort(t)
		store := filepath.Join(dir, name)
		text := natsConfig(name, store, port, monitor, c)
		if n > 1 {
			text += clusterConfig(t, i, routes, c)
		}
		file := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ready := answersOK(fmt.Sprintf("http://127.0.0.1:%d/healthz", monitor))
		out[i] = &NATS{Process: prepare(t, path, []string{"-c", file}, nil, ready), URL: fmt.Sprintf("nats://127.0.0.1:%d", port),
			StoreDir: store,
			Monitor:  fmt.Sprintf("http://127.0.0.1:%d", monitor)}
		out[i].name = name
		out[i].start()
	}
	for _, s := range out {
		s.AwaitReady()
	}
	return out
}

// clusterConfig is the part of a server's configuration about the others.
func clusterConfig(t testing.TB, i int, routes []string, c NATSConfig) string {
	t.Helper()
	urls, more := make([]string, len(routes)), ""
	for j, address := range routes {
		if c.Route != nil && j != i {
			address = c.Route(i, j, address)
		}
		urls[j] = "nats://" + address
	}
	if c.Route != nil {
		// Servers tell each other, and clients, where the others are. That must not lead
		// around what is in between: nothing listens at the address that they tell.
		more = fmt.Sprintf(", no_advertise: true, advertise: \"127.0.0.1:%d\"", FreePort(t))
	}
	return fmt.Sprintf("cluster { name: test, listen: %q, routes: [%s]%s }\n", routes[i], strings.Join(urls, ", "), more)
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
