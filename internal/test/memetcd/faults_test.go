package memetcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestFaults: each fault does to a request what its comment says.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fault   Fault
		took    time.Duration
		refused bool
		stored  bool
		later   time.Duration // when it is stored
	}{
		{"none", Fault{}, 0, false, true, 0},
		{"lost", Fault{Lost: true}, 0, true, false, 0},
		{"unanswered", Fault{Unanswered: true}, 0, true, true, 0},
		{"slow", Fault{Delay: time.Second}, time.Second, false, true, 0},
		{"too slow", Fault{Delay: time.Hour}, time.Minute, true, false, 2 * time.Hour},
		{"late", Fault{Late: time.Minute}, 0, true, false, 0},
		{"late, after a while", Fault{Late: time.Minute}, 0, true, true, 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{Fault: func(e Event) Fault {
					if e != (Event{Op: OpPut, Client: "a", Writes: true}) {
						return Fault{}
					}
					return tt.fault
				}})
				a := s.Client("a")
				defer a.Close()
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := a.Put(ctx, "k", "v")
				equal(t, "took", time.Since(begun), tt.took)
				equal(t, "refused", err != nil, tt.refused)
				if err != nil && tt.took == 0 && status.Code(err) != codes.Unavailable && !isUnavailable(err) {
					t.Errorf("refused with %v", err)
				}
				time.Sleep(tt.later)
				equal(t, "stored", len(must[*clientv3.GetResponse](t)(a.Get(t.Context(), "k")).Kvs) == 1, tt.stored)
				time.Sleep(time.Hour) // for what is late
			})
		})
	}
}

func isUnavailable(err error) bool {
	var e rpctypes.EtcdError
	return errors.As(err, &e) && e.Code() == codes.Unavailable
}

// TestSplitClient: a client that is cut off waits, its watches are told later what they
// missed, and its lease expires meanwhile.
func TestSplitClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		a, b := s.Client("a"), s.Client("b")
		defer a.Close()
		defer b.Close()
		ctx := t.Context()
		lease := must[*clientv3.LeaseGrantResponse](t)(a.Grant(ctx, 6))
		must[*clientv3.PutResponse](t)(a.Put(ctx, "k", "v", clientv3.WithLease(lease.ID)))
		changes := a.Watch(clientv3.WithRequireLeader(ctx), "k", clientv3.WithRev(1))
		equal(t, "before", events(t, changes, 0, 1), "| 2 k=v")
		a.Cut(true)
		begun := time.Now()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := a.Get(short, "k"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("cut off, and after %v: %v", time.Since(begun), err)
		}
		if _, err := a.Get(ctx, "k"); status.Code(err) != codes.Unavailable || time.Since(begun) != 14*time.Second {
			t.Errorf("cut off, and after %v: %v", time.Since(begun), err)
		}
		equal(t, "keys of the lease", len(must[*clientv3.GetResponse](t)(b.Get(ctx, "k")).Kvs), 0)
		must[*clientv3.PutResponse](t)(b.Put(ctx, "k", "w"))
		time.Sleep(time.Hour)
		a.Cut(false)
		equal(t, "after", events(t, changes, 0, 2), "| 3 -k | 4 k=w")
	})
}

// TestOutage: an etcd without a quorum answers nobody and lets no lease expire.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		a := s.Client("a")
		defer a.Close()
		ctx := t.Context()
		lease := must[*clientv3.LeaseGrantResponse](t)(a.Grant(ctx, 6))
		must[*clientv3.PutResponse](t)(a.Put(ctx, "k", "v", clientv3.WithLease(lease.ID)))
		strict := a.Watch(clientv3.WithRequireLeader(ctx), "k", clientv3.WithRev(3))
		patient := a.Watch(ctx, "k", clientv3.WithRev(3))
		time.Sleep(5 * time.Second)
		s.Stop()
		if resp := <-strict; !errors.Is(resp.Err(), rpctypes.ErrNoLeader) {
			t.Errorf("without a leader the watch says %+v: %v", resp, resp.Err())
		}
		time.Sleep(time.Minute)
		s.Start()
		time.Sleep(5 * time.Second)
		equal(t, "keys of the lease", len(must[*clientv3.GetResponse](t)(a.Get(ctx, "k")).Kvs), 1)
		time.Sleep(time.Second)
		equal(t, "its end", events(t, patient, 0, 1), "| 3 -k")
	})
}

// TestKilledClient: a client that was killed executes nothing, and frees no lease.
func TestKilledClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Fault{}
		s := New(Options{Fault: func(e Event) Fault {
			if e.Client == "a" && e.Op == OpPut {
				return slow
			}
			return Fault{}
		}})
		a, b := s.Client("a"), s.Client("b")
		defer a.Close()
		defer b.Close()
		ctx := t.Context()
		lease := must[*clientv3.LeaseGrantResponse](t)(a.Grant(ctx, 6))
		must[*clientv3.PutResponse](t)(a.Put(ctx, "k", "v", clientv3.WithLease(lease.ID)))
		changes := a.Watch(ctx, "k", clientv3.WithRev(3))
		slow.Delay = time.Minute
		begun := time.Now()
		time.AfterFunc(time.Second, a.Kill)
		if _, err := a.Put(ctx, "l", "v"); err == nil || time.Since(begun) != time.Second {
			t.Errorf("killed, and after %v: %v", time.Since(begun), err)
		}
		if _, err := a.Revoke(ctx, lease.ID); err == nil {
			t.Error("a dead client's lease was revoked")
		}
		for resp := range changes {
			if resp.Err() == nil {
				t.Errorf("the watch of a dead client says %+v", resp)
			}
		}
		keys := func() int { return len(must[*clientv3.GetResponse](t)(b.Get(ctx, "k", clientv3.WithRange("m"))).Kvs) }
		equal(t, "keys", keys(), 1)
		time.Sleep(6 * time.Second)
		equal(t, "keys after the lease", keys(), 0)
	})
}

// TestWipe: a new etcd in the place of the old one knows nothing of it, and what was sent to
// the old one does not reach it.
func TestWipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, stored := Fault{}, ""
		s := New(Options{
			Revision: 100, Fault: func(Event) Fault { return late },
			Stored: func(key string, value []byte) { stored += key + "=" + string(value) + " " },
		})
		a := s.Client("a")
		defer a.Close()
		ctx := t.Context()
		lease := must[*clientv3.LeaseGrantResponse](t)(a.Grant(ctx, 6))
		put := must[*clientv3.PutResponse](t)(a.Put(ctx, "k", "v", clientv3.WithLease(lease.ID)))
		equal(t, "the first revision", put.Header.Revision, 101)
		late.Late = time.Minute
		if _, err := a.Put(ctx, "late", "v"); err == nil {
			t.Error("a put that comes late was answered")
		}
		late.Late = 0
		s.Wipe()
		time.Sleep(2 * time.Minute)
		get := must[*clientv3.GetResponse](t)(a.Get(ctx, "k"))
		equal(t, "keys", len(get.Kvs), 0)
		equal(t, "what was stored", stored, "k=v ")
		equal(t, "the revision", get.Header.Revision, 1)
		if _, err := a.KeepAliveOnce(ctx, lease.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("renewed: %v", err)
		}
	})
}

// TestFull: an etcd whose quota is used up deletes and reads, and stores nothing.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		a := s.Client("a")
		defer a.Close()
		ctx := t.Context()
		must[*clientv3.PutResponse](t)(a.Put(ctx, "k", "v"))
		s.SetFull(true)
		if _, err := a.Put(ctx, "l", "v"); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("a put: %v", err)
		}
		if _, err := a.Txn(ctx).Then(clientv3.OpPut("l", "v")).Commit(); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("a transaction: %v", err)
		}
		if _, err := a.Grant(ctx, 6); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("a lease: %v", err)
		}
		must[*clientv3.TxnResponse](t)(a.Txn(ctx).Then(clientv3.OpDelete("k"), clientv3.OpGet("k")).Commit())
		s.SetFull(false)
		must[*clientv3.PutResponse](t)(a.Put(ctx, "l", "v"))
	})
}

// TestUnimplemented: what Fantasia does not use is refused, and not answered somehow.
func TestUnimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{}).Client("a")
		defer a.Close()
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"the rest of a lease": func() error { _, err := a.TimeToLive(ctx, 1); return err },
			"all leases":          func() error { _, err := a.Leases(ctx); return err },
			"a nested condition": func() error {
				_, err := a.Txn(ctx).Then(clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpGet("k")})).Commit()
				return err
			},
		} {
			if err := call(); status.Code(err) != codes.Unimplemented {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
