package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/disk"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// A real etcd that is nearly full: what is new is refused, with the reason, while results,
// ends and deletions go on. Once there is room, so does the rest.
func TestNearlyFullEtcdBeginsNothingNew(t *testing.T) {
	server, err := embedded.StartEtcd(t.Context(), embedded.EtcdOptions{Dir: t.TempDir(), QuotaBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	r := newRigOn(t, server, membus.Options{})
	c := r.leader(func(o *Options) { o.WorkerLease = time.Minute })
	asks, other := r.create(c, "asks", 20, 4, asked), r.create(c, "other", 20, 4)
	if got := r.suggest(c, asks.ID, "a", 1, patience); len(got) != 1 {
		t.Fatalf("client a got the trials %v, want one", got)
	}
	works, proceed := r.create(c, "works", 20, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	r.hand("w", 2, func(a *messaging.Assignment) *messaging.Result {
		<-proceed
		return completes(a)
	})
	t.Cleanup(release)
	r.trial(works.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialRunning })
	r.fill(c)
	if _, err := c.Create(r.ctx(), newStudy("new", 1, 1)); !errors.Is(err, disk.ErrNearlyFull) || !errors.Is(err, study.ErrBusy) ||
		!strings.Contains(err.Error(), "may have 67108864") {
		t.Errorf("a new study: %v, want disk.ErrNearlyFull with the quota", err)
	}
	if _, err := c.Suggest(r.ctx(), asks.ID, "b", 1, patience); !errors.Is(err, disk.ErrNearlyFull) {
		t.Errorf("a new trial: %v, want disk.ErrNearlyFull", err)
	}
	if _, err := c.Tell(r.ctx(), asks.ID, complete("a", 1, 7)); err != nil {
		t.Errorf("a result: %v", err)
	}
	if err := errors.Join(c.Stop(r.ctx(), other.ID, "enough"), c.Delete(r.ctx(), other.ID, true)); err != nil {
		t.Errorf("an end and a deletion: %v", err)
	}
	release() // the engines know of it since the deletion
	r.trial(works.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialCompleted })
	if s, err := r.ledger.Study(r.ctx(), works.ID); err != nil || s.Status.Trials != 1 {
		t.Errorf("a worker's study has %d trials, %v; want no second one", s.Status.Trials, err)
	}
	r.makeRoom(c)
	r.create(c, "new", 1, 1)
	r.suggest(c, asks.ID, "b", 1, patience)
	r.ends(works.ID)
}

// fill fills etcd until the leader has to notice that there is little room, and waits until it does.
// etcd commits ten times a second, and tells its size only then, so each half megabyte gets a second
// to show. It need not: freed pages may take it in.
func (r *rig) fill(c *replica) {
	r.t.Helper()
	var space ledger.Space
	for i := 1; !disk.Full(&space); i++ {
		if _, err := r.etcd.Put(r.ctx(), fmt.Sprintf("junk/%d", i), strings.Repeat("x", 50_000)); err != nil {
			r.t.Fatal(err)
		}
		if i%10 != 0 {
			continue
		}
		before := space
		for range 20 {
			s, err := r.ledger.Space(r.ctx())
			if err != nil {
				r.t.Fatal(err)
			}
			if space = s; s.Used > before.Used || s.Size > before.Size {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	r.eventually(c.wantsRoom)
}

func (r *replica) wantsRoom() error {
	if r.Lacking() == nil {
		return errors.New("there is room")
	}
	return nil
}

// makeRoom does what the error says, and waits until the leader notices.
func (r *rig) makeRoom(c *replica) {
	r.t.Helper()
	resp, err := r.etcd.Delete(r.ctx(), "junk/", clientv3.WithPrefix())
	if err != nil {
		r.t.Fatal(err)
	}
	_, errCompact := r.etcd.Compact(r.ctx(), resp.Header.Revision, clientv3.WithCompactPhysical())
	_, errDefragment := r.etcd.Defragment(r.ctx(), r.etcd.Endpoints()[0])
	if err := errors.Join(errCompact, errDefragment); err != nil {
		r.t.Fatal(err)
	}
	r.eventually(c.Lacking)
}
