package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/dirlock"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startEtcd(t testing.TB, o EtcdOptions) *Etcd {
	t.Helper()
	e, err := StartEtcd(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func client(t testing.TB, e *Etcd) *clientv3.Client {
	t.Helper()
	c, err := e.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEtcdKeepsItsDataAndCleansUp(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	var log bytes.Buffer
	e := startEtcd(t, EtcdOptions{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := client(t, e)
	if _, err := c.Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(e.Endpoint(), "unix://")
	if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("runtime directory: %v, %v; want mode 0700", info.Mode(), err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the runtime directory remains: %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("a start and a close without trouble logged:\n%s", log.String())
	}

	e = startEtcd(t, EtcdOptions{Dir: dir})
	got, err := client(t, e).Get(ctx, "k")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
		t.Errorf("after a restart: %v, %v; want k=v", got, err)
	}
}

func TestEtcdDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	startEtcd(t, EtcdOptions{Dir: dir})
	_, err := StartEtcd(testContext(t), EtcdOptions{Dir: dir})
	if !errors.Is(err, dirlock.ErrInUse) || !strings.Contains(err.Error(), "process") {
		t.Errorf("a second etcd on the directory: %v; want ErrInUse with the process", err)
	}
}

func TestEtcdStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := StartEtcd(ctx, EtcdOptions{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("start under a cancelled context: %v", err)
	}
	startEtcd(t, EtcdOptions{Dir: dir}) // the lock is free again
}

// No network socket may be open: whoever reaches etcd owns the study.
func TestEtcdListensOnlyOnItsSocket(t *testing.T) {
	e := startEtcd(t, EtcdOptions{Dir: t.TempDir()})
	if len(e.server.Peers) != 0 {
		t.Errorf("%d peer listeners; want none", len(e.server.Peers))
	}
	for _, l := range e.server.Clients {
		if n := l.Addr().Network(); n != "unix" {
			t.Errorf("listens on %s %s; want a unix socket only", n, l.Addr())
		}
	}
	if u, err := url.Parse(e.Endpoint()); err != nil || len(u.Path) > maxSocketPath {
		t.Errorf("endpoint %s: %v", e.Endpoint(), err)
	}
}

// A killed process leaves its socket; the next start on the data removes it, and
// removes nothing else, whatever the note says.
func TestEtcdSweepsALeftSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := t.TempDir()
	left, err := runtimeDir(etcdSocket)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), runtimePrefix+"kept")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		filepath.Join(left, etcdSocket): "", filepath.Join(kept, "precious"): "",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, note := range []string{left, kept} {
		if err := os.WriteFile(filepath.Join(dir, socketNote), []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := startEtcd(t, EtcdOptions{Dir: dir}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the left runtime directory: %v; want it removed", err)
	}
	if _, err := os.Stat(filepath.Join(kept, "precious")); err != nil {
		t.Errorf("somebody's file: %v; want it untouched", err)
	}
}

func TestRuntimeDirAvoidsLongPaths(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", long)
	dir, err := runtimeDir(etcdSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(dir) }()
	if strings.HasPrefix(dir, long) {
		t.Errorf("runtime directory %s; want one whose socket fits in %d bytes", dir, maxSocketPath)
	}
	left, err := os.ReadDir(long)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the refused place: %v, %v", left, err)
	}
}

func BenchmarkEtcdColdStart(b *testing.B) {
	for b.Loop() {
		e, err := StartEtcd(b.Context(), EtcdOptions{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		c, err := e.Client()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Put(b.Context(), "k", "v"); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = c.Close()
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
