package backend_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/backend"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/study"
)

// A read whose etcd is away says so, and where etcd should be, within a few seconds.
func TestEtcdAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil { // nobody listens there any more
		t.Fatal(err)
	}
	etcd, err := ledger.Connect([]string{"http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	o := inject.Coordinator(coordinator.DefaultOptions())
	o.Etcd, o.Bus = etcd, membus.New(membus.Options{}).Leader()
	c, err := coordinator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := backend.New(c, ledger.New(etcd, ledger.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	_, err = b.Study(ctx, "digits")
	if took := time.Since(began); !errors.Is(err, study.ErrAway) ||
		!strings.Contains(err.Error(), "etcd at http://"+address+" does not answer") || took > 30*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	// Who leads is not known either.
	if _, _, err := b.Leader(ctx); !errors.Is(err, study.ErrAway) {
		t.Errorf("look for the leader: %v", err)
	}
	// A caller that has less patience gets its own error.
	hurried, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err = b.Study(hurried, "digits"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller without patience: %v", err)
	}
}
