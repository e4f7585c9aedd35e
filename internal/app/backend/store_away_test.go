package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// A leader that loses etcd refuses changes after a few seconds, with etcd's address.
func TestChangesWithoutEtcd(t *testing.T) {
	r := newReplica(t, time.Minute, realEtcd(t)) // the term outlasts the test
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
		"update": func() error { _, err := r.Update(ctx, "s", text, 0); return err },
		"stop":   func() error { _, err := r.Stop(ctx, "s", ""); return err },
		"delete": func() error { return r.Delete(ctx, "deleted", true) },
	} {
		asked.Go(func() {
			began := time.Now()
			err := change()
			// Far less than the 30 s that a caller waits.
			if took := time.Since(began); !errors.Is(err, study.ErrAway) || took > 3*etcdPatience ||
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

// What the members of an etcd say that have no leader is told to callers as an outage, so
// that they try again: it is no fault of the program.
func TestEtcdWithoutALeader(t *testing.T) {
	r := newReplica(t, time.Minute)
	for _, said := range []error{rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail,
		rpctypes.ErrStopped} {
		err := fmt.Errorf("read the trials: %w", said)
		if got := r.l.bounded(r.ctx, func(context.Context) error { return err }); !errors.Is(got, study.ErrAway) {
			t.Errorf("a read that etcd answers with %q: %v", said, got)
		}
		if got := translate(err); !errors.Is(got, study.ErrUnavailable) {
			t.Errorf("a change that etcd answers with %q: %v", said, got)
		}
	}
	refused := fmt.Errorf("read the trials: %w", rpctypes.ErrPermissionDenied)
	if got := translate(refused); errors.Is(got, study.ErrUnavailable) {
		t.Errorf("trying again does not help without a permission: %v", got)
	}
}

// lostBus is a bus whose servers cannot set anything up any more.
type lostBus struct {
	messaging.Leader
	lost atomic.Bool
}

func (b *lostBus) Setup(ctx context.Context, pools []string) error {
	if b.lost.Load() {
		return errors.New("nats: no response from stream")
	}
	return b.Leader.Setup(ctx, pools)
}

// A leader that has lost NATS tells callers to try again.
func TestChangesWithoutNATS(t *testing.T) {
	var bus lostBus
	r := newReplica(t, time.Minute, func(o *coordinator.Options) { bus.Leader, o.Bus = o.Bus, &bus })
	if _, err := r.Create(r.ctx, fmt.Appendf(nil, file, "s", 5, "default")); err != nil {
		t.Fatal(err)
	}
	bus.lost.Store(true)
	for name, change := range map[string]func() error{
		"create": func() error { _, err := r.Create(r.ctx, fmt.Appendf(nil, file, "other", 5, "default")); return err },
		"update": func() error { _, err := r.Update(r.ctx, "s", fmt.Appendf(nil, file, "s", 7, "default"), 0); return err },
	} {
		if err := change(); !errors.Is(err, study.ErrUnavailable) || !strings.Contains(err.Error(), "NATS is not ready") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
