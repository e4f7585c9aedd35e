package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Etcd is an etcd server in a process of its own.
type Etcd struct {
	*Process
	// URL is the address for clients.
	URL string
	// DataDir is where it keeps everything.
	DataDir string
}

// Wipe deletes the data of a server that has ended. Restarted, it is a new, empty one.
func (e *Etcd) Wipe() {
	e.t.Helper()
	if err := os.RemoveAll(e.DataDir); err != nil {
		e.t.Fatal(err)
	}
}

// StartEtcd starts one etcd and waits until it serves. args are etcd's own flags; with
// --cert-file it serves clients over TLS.
func StartEtcd(t testing.TB, args ...string) *Etcd {
	t.Helper()
	return StartEtcdCluster(t, 1, args...)[0]
}

// StartEtcdCluster starts an etcd cluster of n members and waits until all of
// them serve.
func StartEtcdCluster(t testing.TB, n int, args ...string) []*Etcd {
	t.Helper()
	return StartEtcdClusterBehind(t, n, func(_ int, peer string) string { return peer }, args...)
}

// StartEtcdClusterBehind is StartEtcdCluster with something between the members, such as
// proxies: behind returns the URL at which the others reach a member that listens at a
// URL. The members are numbered from 0.
func StartEtcdClusterBehind(t testing.TB, n int, behind func(member int, peer string) string, args ...string) []*Etcd {
	t.Helper()
	path, dir := Build(t, etcdModule), t.TempDir()
	clients, peers, reached, members := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	scheme := "http"
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--cert-file=") }) {
		scheme = "https"
	}
	for i := range n {
		clients[i] = fmt.Sprintf("%s://127.0.0.1:%d", scheme, FreePort(t))
		peers[i] = fmt.Sprintf("http://127.0.0.1:%d", FreePort(t))
		reached[i] = behind(i, peers[i])
		members[i] = fmt.Sprintf("etcd-%d=%s", i, reached[i])
	}
	out := make([]*Etcd, n)
	for i := range n {
		name, health := fmt.Sprintf("etcd-%d", i), clients[i]
		if scheme == "https" { // the health check sends no certificate
			health = fmt.Sprintf("http://127.0.0.1:%d", FreePort(t))
		}
		flags := append([]string{
			"--name=" + name, "--data-dir=" + filepath.Join(dir, name),
			"--listen-client-urls=" + clients[i], "--advertise-client-urls=" + clients[i],
			"--listen-peer-urls=" + peers[i], "--initial-advertise-peer-urls=" + reached[i],
			"--initial-cluster=" + strings.Join(members, ","), "--initial-cluster-token=" + filepath.Base(dir),
			"--log-level=warn",
		}, args...)
		if health != clients[i] {
			flags = append(flags, "--listen-metrics-urls="+health)
		}
		out[i] = &Etcd{Process: prepare(t, path, flags, nil, answersOK(health+"/health")), URL: clients[i], DataDir: filepath.Join(dir, name)}
		out[i].name = name
		out[i].start()
	}
	for _, e := range out {
		e.AwaitReady()
	}
	return out
}

// EtcdClient returns a client of the endpoints; the test's end closes it.
func EtcdClient(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
