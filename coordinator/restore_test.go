package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// A backup is restored beside a broker that holds a later epoch, and everything that was
// published since. The study goes on: trials in the backup keep the results that the
// broker still has, and each trial is told once.
func TestRestoredLedgerBesideOldBroker(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w", 4, nil)
	s := r.create(c, "restored", 60, 4)
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() >= 10 })
	var file bytes.Buffer
	header, saved, err := backup.Write(r.ctx(), r.ledger, &file, "test")
	if err != nil {
		t.Fatal(err)
	}
	if saved.Studies != 1 || saved.Trials < 10 || header.Revision == 0 {
		t.Errorf("the backup holds %+v at revision %d, want one study and at least 10 trials", saved, header.Revision)
	}
	_, _, err = backup.Restore(r.ctx(), r.etcd, r.ledger, bytes.NewReader(file.Bytes()), backup.Options{Force: true})
	if !errors.Is(err, backup.ErrLed) {
		t.Fatalf("restore under a leader: %v, want ErrLed", err)
	}
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() >= 30 })
	c.stop()

	_, _, err = backup.Restore(r.ctx(), r.etcd, r.ledger, bytes.NewReader(file.Bytes()), backup.Options{})
	if !errors.Is(err, backup.ErrNotEmpty) {
		t.Fatalf("restore into a ledger with records: %v, want ErrNotEmpty", err)
	}
	// The revisions of this etcd cannot go back, so the broker's epoch goes up instead.
	const seen = 1_000_000_000
	r.fence(seen)
	_, restored, err := backup.Restore(r.ctx(), r.etcd, r.ledger, bytes.NewReader(file.Bytes()), backup.Options{Force: true})
	if err != nil || restored != saved {
		t.Fatalf("restore: %+v, %v; want %+v", restored, err, saved)
	}
	first := r.leader()
	r.ends(s.ID)
	stored := r.verify(s.ID, 60, 60)
	for i := range stored.Trials {
		if a := stored.Trials[i].Last(); a.Outcome != messaging.OutcomeCompleted {
			t.Errorf("trial %d ended with %s", i+1, a.Outcome)
		}
	}
	// The raised epoch holds for later leaders too.
	for _, leader := range []*replica{first, nil} {
		if leader == nil {
			leader = r.leader()
		}
		if epoch, err := leader.Epoch(r.ctx()); err != nil || epoch <= seen || epoch != r.fence(1) {
			t.Errorf("the leader's epoch is %d (%v), the broker's %d; want one above %d", epoch, err, r.fence(1), seen)
		}
		leader.stop()
	}
}

// fence tries to fence the shard with an epoch, and returns the one that holds it.
func (r *rig) fence(epoch int64) int64 {
	r.t.Helper()
	bus := r.broker.Leader()
	defer bus.Close()
	var fenced *messaging.Fenced
	switch err := bus.Fence(r.ctx(), epoch); {
	case errors.As(err, &fenced):
		return fenced.Stored
	case err != nil:
		r.t.Fatal(err)
	}
	return epoch
}

// An etcd that gives lower epochs than the broker has seen, and that was not restored by
// a backup, could belong to another installation: nobody leads, and the reason says what
// to do.
func TestRolledBackLedgerIsExplained(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	r.fence(1_000_000_000)
	c := r.replica(func(o *Options) { o.Advertise = "here" })
	r.eventually(func() error {
		err := c.Obstacle(r.ctx())
		if err == nil || !strings.Contains(err.Error(), "fantasia restore --force") || !strings.Contains(err.Error(), "1000000000") {
			return fmt.Errorf("the obstacle is %q, want the epochs and what to do", fmt.Sprint(err))
		}
		return nil
	})
	if r.fence(1) != 1_000_000_000 {
		t.Error("the leader raised the epoch of a ledger that was not restored")
	}
}

// Nobody leads a ledger of which a part is missing.
func TestUnfinishedRestore(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	key := ledger.DefaultPrefix + "restored/0"
	if _, err := r.etcd.Put(r.ctx(), key, seal.Seal(key, []byte(`{"done":false,"at":"2026-01-02T03:04:05Z"}`))); err != nil {
		t.Fatal(err)
	}
	c := r.replica()
	r.eventually(func() error {
		if err := c.Obstacle(r.ctx()); !errors.Is(err, ledger.ErrUnfinished) {
			return fmt.Errorf("the obstacle is %q, want ErrUnfinished", fmt.Sprint(err))
		}
		return nil
	})
}

// A restore stops studies as a leader would: their open trials are cancelled, ended ones keep
// their values, and the next leader opens no trial of them.
func TestRestoreStopsStudies(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w", 4, func(a *messaging.Assignment) *messaging.Result {
		if a.Trial > 10 {
			return nil
		}
		return completes(a)
	})
	gone := r.create(c, "team.gone", 60, 4)
	r.until(gone.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() == 10 && s.Status.Counts.Running > 0 })
	ended := r.create(c, "team.ended", 4, 4)
	if err := c.Stop(r.ctx(), ended.ID, "by hand"); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, _, err := backup.Write(r.ctx(), r.ledger, &file, "test"); err != nil {
		t.Fatal(err)
	}
	c.stop()
	_, studies, err := backup.Inspect(r.ctx(), bytes.NewReader(file.Bytes()))
	if err != nil || len(studies) != 2 || studies[0].Study.ID != gone.ID || studies[0].Status.State != study.Running ||
		studies[1].Status.Reason != "by hand" {
		t.Fatalf("the backup has the studies %+v, %v", studies, err)
	}
	change := StopStudies(r.ledger, map[string]string{gone.ID: "its resource is gone", ended.ID: "its resource is gone"})
	if _, _, err := backup.Restore(r.ctx(), r.etcd, r.ledger, bytes.NewReader(file.Bytes()),
		backup.Options{Force: true, Change: change}); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		stored, err := r.ledger.LoadStudy(r.ctx(), gone.ID)
		if err != nil {
			t.Fatal(err)
		}
		s := &stored.Status
		if s.State != study.Stopped || s.Reason != "its resource is gone" || s.Ended.IsZero() || s.Counts.Open() != 0 ||
			s.Counts.Completed != 10 {
			t.Errorf("the restored study is %+v", s)
		}
		other, err := r.ledger.Study(r.ctx(), ended.ID)
		if err != nil || other.Status.Reason != "by hand" {
			t.Errorf("the study that had ended is %+v, %v", other.Status, err)
		}
	}
	check()
	next := r.leader()
	r.hand("x", 4, nil)
	last := r.create(next, "last", 8, 4)
	r.ends(last.ID)
	check()
}
