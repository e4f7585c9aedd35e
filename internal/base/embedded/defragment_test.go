package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A database that is full of free space shrinks at the next start, keeps its records, and takes new ones, although etcd had
// stopped to take any. One in use stays as it is.
func TestFreeSpaceIsGivenBack(t *testing.T) {
	o := EtcdOptions{Dir: t.TempDir(), QuotaBytes: 40 << 20}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(filepath.Join(DataDir(o.Dir), "member", "snap", "db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	restart := func(e *Etcd) (*Etcd, string) {
		t.Helper()
		var log bytes.Buffer
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		return startEtcd(t, o), log.String()
	}
	e := startEtcd(t, o)
	c, ctx := client(t, e), testContext(t)
	if _, err := c.Put(ctx, "kept", "value"); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		_, err := c.Put(ctx, fmt.Sprintf("junk/%d", i), strings.Repeat("x", 1<<20))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	e, log := restart(e)
	if full := size(); full < defragLeast || strings.Contains(log, "defragmented") {
		t.Fatalf("a full database was defragmented to %d bytes: %s", full, log)
	}
	c = client(t, e)
	gone, err := c.Delete(ctx, "junk/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(ctx, gone.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, "new", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("a full etcd: %v, want that it has no space", err)
	}
	e, log = restart(e)
	if left := size(); left > 1<<20 || !strings.Contains(log, "defragmented etcd's database") {
		t.Errorf("the database has %d bytes after a restart: %s", left, log)
	}
	c = client(t, e)
	if _, err := c.Put(ctx, "new", "value"); err != nil {
		t.Errorf("a new record: %v", err)
	}
	for _, key := range []string{"kept", "new"} {
		if got, err := c.Get(ctx, key); err != nil || len(got.Kvs) != 1 {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
}
