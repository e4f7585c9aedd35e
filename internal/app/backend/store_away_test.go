package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// A leader that loses etcd refuses changes after a few seconds, with etcd's address.
func TestChangesWithoutEtcd(t *testing.T) {
	r := newReplica(t, time.Minute) // the term outlasts the test
	ctx := r.ctx
	// The leader's memory forgets a study at once when it is asked to delete it, so the
	// other changes have one of their own.
	for _, name := range []string{"s", "deleted"} {
		if _, err := r.Create(ctx, fmt.Appendf(nil, file, name, 5, "default")); err != nil {
			t.Fatal(err)
		}
	}
	const nowhere = "http://127.0.0.1:1" // a privileged port that nothing uses
	there := r.client.Endpoints()
	r.client.SetEndpoints(nowhere)
	defer r.client.SetEndpoints(there...)
	text := fmt.Appendf(nil, file, "s", 7, "default")
	var asked sync.WaitGroup
	for name, change := range map[string]func() error{
		"create": func() error { _, err := r.Create(ctx, fmt.Appendf(nil, file, "other", 5, "default")); return err },
		"update": func() error { _, err := r.Update(ctx, "s", text); return err },
		"stop":   func() error { _, err := r.Stop(ctx, "s", ""); return err },
		"delete": func() error { return r.Delete(ctx, "deleted", true) },
	} {
		asked.Go(func() {
			began := time.Now()
			err := change()
			// Far less than the 30 s that a caller waits.
			if took := time.Since(began); !errors.Is(err, server.ErrEtcdAway) || took > 3*etcdPatience ||
				!strings.Contains(err.Error(), "etcd at "+nowhere+" does not answer; once it does, the change may still be made") {
				t.Errorf("%s, after %s: %v", name, took, err)
			}
		})
	}
	asked.Wait()
	hurried, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := r.Stop(hurried, "s", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller without patience: %v", err)
	}
}
