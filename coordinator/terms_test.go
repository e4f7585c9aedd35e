package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// revoke ends the leader's lease and returns the fence of its term.
func (r *rig) revoke() ledger.Fence {
	r.t.Helper()
	resp, err := r.etcd.Get(r.ctx(), r.ledger.LeaderKey())
	if err != nil || len(resp.Kvs) != 1 {
		r.t.Fatalf("the leader's key: %v, %v", resp, err)
	}
	kv := resp.Kvs[0]
	if _, err := r.etcd.Revoke(r.ctx(), clientv3.LeaseID(kv.Lease)); err != nil {
		r.t.Fatal(err)
	}
	return ledger.Fence{Key: r.ledger.LeaderKey(), Revision: kv.CreateRevision}
}

// after waits for a leader with a later epoch.
func (r *rig) after(epoch int64) {
	r.t.Helper()
	r.eventually(func() error {
		_, next, err := election.Leader(r.t.Context(), r.etcd, r.ledger.LeaderKey())
		if err == nil && next <= epoch {
			err = errors.New("no new leader")
		}
		return err
	})
}

// Leaders change in the middle of a study: no result is lost or counted twice.
func TestTakeoversInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	r.replica()
	r.hand("w1", 3, nil)
	r.hand("w2", 3, nil)
	s := r.create(first, "terms", 150, 6)
	for _, ended := range []int{20, 60, 100} {
		r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() >= ended })
		r.after(r.revoke().Revision)
	}
	r.ends(s.ID)
	stored := r.verify(s.ID, 150, 150)
	for i := range stored.Trials {
		if n := len(stored.Trials[i].Attempts); n != 1 {
			t.Errorf("trial %d has %d attempts, though no worker was lost", i+1, n)
		}
	}
}

// After another leader has taken over, the ledger and the broker refuse an old leader's
// writes.
func TestZombieIsFenced(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	s := r.create(first, "zombie", 4, 1)
	tr := r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialQueued })
	resp, err := r.etcd.Get(r.ctx(), r.ledger.LeaderKey())
	if err != nil {
		t.Fatal(err)
	}
	// A second writer of the same term, like a zombie's.
	zombie, err := ledger.New(r.client(), ledger.Options{}).Lead(r.ctx(),
		ledger.Fence{Key: r.ledger.LeaderKey(), Revision: resp.Kvs[0].CreateRevision})
	if err != nil {
		t.Fatal(err)
	}
	second := r.replica()
	r.revoke()
	if err := second.Leading(r.ctx()); err != nil && first.term.Load() == nil {
		t.Fatal(err)
	}
	// Either may lead now, under a later epoch; writes of the old term are refused.
	var b ledger.Batch
	b.PutTrial(s.ID, &tr)
	if err := zombie.Commit(r.ctx(), &b); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("a zombie's commit: %v", err)
	}
	stale := r.broker.Leader()
	defer stale.Close()
	if err := stale.Fence(r.ctx(), resp.Kvs[0].CreateRevision); !errors.Is(err, messaging.ErrFenced) {
		t.Errorf("a zombie raises its fence again: %v", err)
	}
	if second.term.Load() != nil {
		err := first.bus.Assign(r.ctx(), []*messaging.Assignment{{AttemptID: named(s.ID, &tr, 1), Pool: study.DefaultPool, StudyName: "zombie",
			Parameters: tr.Point, ParameterOrder: []string{"x"}, Objective: s.Definition.Spec.Objective, Run: s.Definition.Spec.Trial}})
		if !errors.Is(err, messaging.ErrFenced) {
			t.Errorf("a zombie publishes: %v", err)
		}
	}
}

// A command is answered even if its term has just ended.
func TestCommandsAfterTheTerm(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	l := c.term.Load()
	c.stop()
	c.term.Store(l) // as read by a command just before the term ended
	for range 2 * inbox.Size {
		if err := c.Stop(context.Background(), "any", ""); !errors.Is(err, ErrNotLeader) {
			t.Fatalf("a command after the term: %v", err)
		}
	}
}

// A request that its caller cancels does not end the leader's term.
func TestCancelledCreateKeepsTheTerm(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	before := c.term.Load()
	for range 20 {
		ctx, cancel := context.WithCancel(r.ctx())
		go cancel()
		_, _ = c.Create(ctx, newStudy("given-up", 1, 1))
		cancel()
	}
	s := r.create(c, "kept", 2, 1)
	r.hand("w", 1, nil)
	r.ends(s.ID)
	if c.term.Load() != before {
		t.Error("the term ended")
	}
}

// A study that this version cannot load does not affect the others.
func TestBrokenStudyIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	bad := r.create(first, "bad", 5, 1, func(s *study.Spec) { s.Algorithm.Name = "odd" })
	good := r.create(first, "good", 5, 1)
	first.stop()
	c := r.leader(func(o *Options) {
		o.NewOptimizer = func(a study.Algorithm) (optimizer.Optimizer, error) {
			if a.Name == "odd" {
				return nil, errors.New("no such algorithm")
			}
			return sampler{}, nil
		}
	})
	if err := c.Stop(r.ctx(), "bad", ""); !errors.Is(err, studies.ErrBroken) {
		t.Errorf("stop a broken study: %v", err)
	}
	if err := c.Delete(r.ctx(), "bad", false); !errors.Is(err, ErrRunning) {
		t.Errorf("delete a broken study: %v", err)
	}
	if err := c.Delete(r.ctx(), "bad", true); err != nil {
		t.Errorf("force the deletion of a broken study: %v", err)
	}
	if _, err := r.ledger.Study(r.ctx(), bad.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a deleted study: %v", err)
	}
	r.hand("w", 1, nil) // may claim an assignment of the deleted study: it is told to stop
	r.ends(good.ID)
	r.verify(good.ID, 5, 5)
}

// An unreadable record or an unknown key prevents neither the leading of other studies
// nor the deletion of its own.
func TestUnreadableRecordsBreakTheirStudy(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	var ids []string
	for _, leaf := range []string{"spec", "status", "trials/00000001"} {
		s := r.create(first, "bad-"+leaf[:4], 5, 1)
		ids = append(ids, ledger.DefaultPrefix+"studies/"+s.ID+"/"+leaf)
	}
	good := r.create(first, "good", 5, 1)
	first.stop()
	for _, key := range append(ids, ledger.DefaultPrefix+"studies/"+good.ID+"/notes") {
		if _, err := r.etcd.Put(r.ctx(), key, "?"); err != nil {
			t.Fatal(err)
		}
	}
	c := r.leader()
	for i, name := range []string{"bad-spec", "bad-stat", "bad-tria"} {
		err := c.Stop(r.ctx(), name, "")
		for _, want := range []string{name, ids[i], "fantasia restore", "another member of the etcd cluster"} {
			if !errors.Is(err, studies.ErrBroken) || !errors.Is(err, study.ErrDamaged) || !strings.Contains(err.Error(), want) {
				t.Errorf("stop %s: %v; want %s", name, err, want)
			}
		}
		id := strings.Split(ids[i], "/")[4]
		if why := c.Broken(id); why == nil || why.Error() != err.Error() {
			t.Errorf("study %s is broken because %v, want %v", id, why, err)
		}
		if kept, err := r.etcd.Get(r.ctx(), ids[i]); err != nil || len(kept.Kvs) != 1 || string(kept.Kvs[0].Value) != "?" {
			t.Errorf("the damaged record %s was written over: %v, %v", ids[i], kept, err)
		}
		if err := c.Delete(r.ctx(), name, true); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
		r.create(c, name, 1, 1) // its name is free
	}
	r.hand("w", 1, nil)
	r.ends(good.ID)
	r.verify(good.ID, 5, 5)
}

// A result of a study that this version cannot load, as during a rollback, stays with
// its worker until a leader can load the study.
func TestResultsOfABrokenStudyWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	open := make(gate)
	w := r.hand("w", 1, open.completes)
	s := r.create(first, "rollback", 1, 1)
	tr := r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialRunning })
	first.stop()
	older := r.leader(func(o *Options) {
		o.NewOptimizer = func(study.Algorithm) (optimizer.Optimizer, error) { return nil, errors.New("no such algorithm") }
	})
	before := r.cursor(messaging.StreamResult)
	close(open)
	// The older leader has read past it twice.
	r.eventually(func() error {
		if now := r.cursor(messaging.StreamResult); now < before+2 {
			return fmt.Errorf("the cursor stands at %d, was at %d", now, before)
		}
		return nil
	})
	if got, dead := w.receipts(named(s.ID, &tr, 1)), r.broker.DeadLetters(); len(got)+len(dead) != 0 {
		t.Errorf("receipts %q and the dead letters %+v of a result that nobody has folded", got, dead)
	}
	older.stop()
	r.leader()
	r.ends(s.ID)
	if stored := r.verify(s.ID, 1, 1); len(stored.Trials[0].Attempts) != 1 {
		t.Errorf("the trial was evaluated again: %+v", stored.Trials[0].Attempts)
	}
}

// cursor returns how far a stream has been read, by the ledger.
func (r *rig) cursor(s messaging.Stream) uint64 {
	r.t.Helper()
	snapshot, err := r.ledger.Load(r.ctx())
	if err != nil {
		r.t.Fatal(err)
	}
	return snapshot.Cursors[s].Sequence
}

// An ended study's engine is dropped after a while and loaded again for commands, but not
// to answer late workers.
func TestEndedStudiesAreLoadedWhenWanted(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	w := r.hand("w", 2, nil)
	s := r.create(c, "rests", 4, 2)
	r.ends(s.ID)
	l := c.term.Load()
	if err := c.command(r.ctx(), func(_ context.Context, l *leader, now time.Time) error {
		l.tick(now.Add(10 * time.Minute))
		if l.studies.Get(s.ID).Engine != nil || len(l.studies.Ordered()) != 0 {
			t.Error("an ended study keeps its engine")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stored := r.verify(s.ID, 4, 4)
	late := r.hand("late", 0, nil)
	id := named(s.ID, &stored.Trials[0], 1)
	if err := late.bus.PublishResult(r.ctx(), &messaging.Result{AttemptID: id, Worker: "late", Outcome: messaging.OutcomeFailed,
		Started: time.Now(), Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := late.heard(messaging.ControlReceipt, id); got.Disposition != "late" || len(r.broker.DeadLetters()) != 1 {
		t.Errorf("the late result was receipted as %q, with %d dead letters", got.Disposition, len(r.broker.DeadLetters()))
	}
	again := &messaging.Result{AttemptID: id, Worker: "w", Outcome: messaging.OutcomeCompleted, Values: stored.Trials[0].Values}
	if err := w.bus.PublishResult(r.ctx(), again); err != nil {
		t.Fatal(err)
	}
	r.eventually(func() error {
		if got := w.receipts(id); !slices.Contains(got, "duplicate") || len(r.broker.DeadLetters()) != 1 {
			return fmt.Errorf("the result that was folded has the receipts %q, and there are %d dead letters", got, len(r.broker.DeadLetters()))
		}
		return nil
	})
	id.Attempt = 2
	if err := late.bus.Claim(r.ctx(), "1",
		&messaging.Claim{AttemptID: id, Pool: study.DefaultPool, Worker: "late", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	late.heard(messaging.ControlCancel, id)
	if err := c.command(r.ctx(), func(_ context.Context, l *leader, _ time.Time) error {
		if l.studies.Get(s.ID).Engine != nil {
			t.Error("an ended study was loaded for what a worker sent")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(r.ctx(), s.ID, newStudy("rests", 6, 2), 0); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() == 6 })
	r.verify(s.ID, 6, 6)
	if c.term.Load() != l {
		t.Error("the term ended")
	}
}

// A caller that leaves gets an error, and reads nothing that the loop still writes (the
// race detector sees it).
func TestCallersThatLeave(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "left", 4, 2)
	busy, release, blocked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		blocked <- c.command(r.ctx(), func(context.Context, *leader, time.Time) error {
			close(busy)
			<-release
			return nil
		})
	}()
	<-busy
	for range 20 {
		ctx, leave := context.WithTimeout(r.ctx(), time.Millisecond)
		if p, err := c.Progress(ctx, s.ID); p != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Progress returned %v, %v", p, err)
		}
		if epoch, err := c.Epoch(ctx); epoch != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Epoch returned %v, %v", epoch, err)
		}
		leave()
	}
	close(release)
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	if p, err := c.Progress(r.ctx(), s.ID); err != nil || p.Study.ID != s.ID {
		t.Errorf("Progress afterwards: %v, %v", p, err)
	}
}

// A worker that fails three times in a row while another succeeds gets no more attempts
// of the study. Its next process is told so again, by the leader of that time.
func TestFailingWorkerIsAvoided(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	answered := make(chan struct{})
	var once sync.Once
	r.hand("good", 1, func(a *messaging.Assignment) (res *messaging.Result) {
		once.Do(func() {
			close(answered)
			res = completes(a)
		})
		return res // the next one runs on, so that the study does
	})
	failed := 0
	bad := r.hand("bad", 1, func(a *messaging.Assignment) *messaging.Result {
		<-answered // so that the study's first three trials do not all fail
		if failed++; failed > 3 {
			return nil
		}
		return fails(a)
	})
	s := r.create(first, "avoids", 400, 2)
	id := messaging.AttemptID{Study: s.ID}
	bad.heard(messaging.ControlAvoid, id)
	if err := first.command(r.ctx(), func(_ context.Context, l *leader, now time.Time) error {
		if slots, _ := l.workers.Slots(study.DefaultPool, l.studies.Get(s.ID).Avoided); slots > 1 {
			t.Errorf("%d slots, though one of two workers is avoided", slots)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	bad.stop()
	first.stop()
	r.leader()
	again := r.hand("bad", 1, never, func(h *hand) { h.instance = "bad-2" })
	again.heard(messaging.ControlAvoid, id)
	again.stop()
	r.hand("bad", 1, never, func(h *hand) { h.instance = "bad-3" }).heard(messaging.ControlAvoid, id)
}

// wordy is an optimiser whose reasons are too long for the ledger.
type wordy struct{ sampler }

func (w wordy) Suggest(ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	s, state, err := w.sampler.Suggest(ctx, p, state, n, rng)
	for i := range s {
		s[i].Reasons.Note = strings.Repeat("x", ledger.MaxBytes)
	}
	return s, state, err
}

// A record that the ledger refuses breaks its study, and ends no term.
func TestRecordThatIsTooLargeBreaksItsStudy(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) {
		o.NewOptimizer = func(a study.Algorithm) (optimizer.Optimizer, error) {
			if a.Name == "wordy" {
				return wordy{}, nil
			}
			return sampler{}, nil
		}
	})
	before := c.term.Load()
	bad := r.create(c, "bad", 5, 1, func(s *study.Spec) { s.Algorithm.Name = "wordy" })
	good := r.create(c, "good", 5, 1)
	r.eventually(func() error {
		if _, err := c.Progress(r.ctx(), "bad"); !errors.Is(err, studies.ErrBroken) || !errors.Is(err, ledger.ErrTooLarge) {
			return fmt.Errorf("look at a study with a record that is too large: %w", err)
		}
		return nil
	})
	r.hand("w", 1, nil)
	r.ends(good.ID)
	r.verify(good.ID, 5, 5)
	if s, err := r.ledger.LoadStudy(r.ctx(), bad.ID); err != nil || len(s.Trials) != 0 || s.Status.State != study.Running {
		t.Errorf("the broken study has %+v, %v", s, err)
	}
	if c.term.Load() != before {
		t.Error("the term ended")
	}
}

// Commands whose commit comes too late, since the term has ended, are refused as by any
// replica that does not lead: nothing was stored, and the caller can try the next leader.
func TestCommandsOfATermThatHasEnded(t *testing.T) {
	r := newRig(t, membus.Options{})
	key, err := r.etcd.Put(r.ctx(), r.ledger.LeaderKey(), "a leader")
	if err != nil {
		t.Fatal(err)
	}
	writer, err := r.ledger.Lead(r.ctx(), ledger.Fence{Key: r.ledger.LeaderKey(), Revision: key.Header.Revision})
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Etcd, o.Bus, o.NewOptimizer = r.client(), r.broker.Leader(), newSampler
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Bus.Close() })
	for _, cause := range []error{election.ErrSelfFenced, election.ErrLost, context.Canceled} {
		ctx, cancel := context.WithCancelCause(r.ctx())
		cancel(cause)
		var answer error
		l := newLeader(c, &election.Term{})
		l.group.WriteWith(writer)
		l.group.Answer(func(err error) { answer = err })
		l.group.Exported(time.Now())
		if err := l.commit(ctx); !errors.Is(err, cause) {
			t.Errorf("a commit of a term that ended with %q: %v", cause, err)
		}
		if !errors.Is(answer, ErrNotLeader) {
			t.Errorf("the command of a term that ended with %q is answered with: %v", cause, answer)
		}
	}
}
