package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
)

// TestEtcdThatWasFull fills etcd and kills the leader. While etcd is full, nobody
// can lead. Once there is room again, a coordinator leads, although no operator has ended etcd's alarm.
func TestEtcdThatWasFull(t *testing.T) {
	c := testcluster.Start(t, testcluster.Options{Coordinators: 2, Etcd: []string{"--quota-backend-bytes=4194304"}})
	leader, _, epoch := c.Leader(0)
	var err error
	for n := 0; err == nil; n++ {
		_, err = c.Etcd.Put(t.Context(), fmt.Sprint("/other/", n), strings.Repeat("x", 500_000))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("etcd refuses with %v, want it to be full", err)
	}
	leader.Kill()
	<-time.After(3 * testcluster.LeaseTTL) // for as long as it takes to lead otherwise
	if _, now, err := election.Leader(t.Context(), c.Etcd, c.Ledger.LeaderKey()); err == nil && now > epoch {
		t.Fatalf("somebody leads while etcd is full, in epoch %d", now)
	}
	deleted, err := c.Etcd.Delete(t.Context(), "/other/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Etcd.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Etcd.Defragment(t.Context(), c.EtcdServer.URL); err != nil {
		t.Fatal(err)
	}
	c.Leader(epoch)
}
