package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// gate holds back evaluations until it is opened.
type gate chan struct{}

func (g gate) completes(a *messaging.Assignment) *messaging.Result {
	<-g
	return completes(a)
}

func lostOften(s *study.Spec) { n := 10; s.Trial.Retries.Lost = &n }

// A worker whose receipt was lost sends its result again. It gets another receipt, and
// the optimiser is told once.
func TestLostReceipts(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	r := newRig(t, membus.Options{Fault: func(e membus.Event) membus.Fault {
		return membus.Fault{Lost: e.Op == membus.OpControl && n.Add(1)%3 != 0}
	}})
	c := r.leader()
	w := r.hand("w", 2, nil)
	s := r.create(c, "receipts", 8, 2)
	r.ends(s.ID)
	stored := r.verify(s.ID, 8, 8)
	duplicates := 0
	for i := range stored.Trials {
		id := named(s.ID, &stored.Trials[i], 1)
		w.heard(messaging.ControlReceipt, id)
		if slices.Contains(w.receipts(id), "duplicate") {
			duplicates++
		}
	}
	if duplicates == 0 {
		t.Error("no result was receipted as a duplicate, though receipts were lost")
	}
}

// A stream that is deleted and recreated begins at sequence 1 again. Messages resent to
// it have smaller sequences than the cursor, and must be read all the same.
func TestStreamsRecreatedUnderTheReader(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.Engine.Republish = 200 * time.Millisecond })
	r.hand("w1", 2, nil)
	r.hand("w2", 2, nil)
	s := r.create(c, "wiped", 60, 4)
	for _, ended := range []int{15, 30, 45} {
		r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() >= ended })
		r.broker.Recreate(messaging.StreamResult)
		r.broker.Recreate(messaging.StreamClaim)
	}
	r.ends(s.ID)
	r.verify(s.ID, 60, 60)
}

// Between two terms the result stream is recreated and the workers resend their
// results. The next leader must apply these results before it opens the studies.
// Otherwise it would hand back their attempts and evaluate them a second time.
func TestStreamRecreatedBetweenTerms(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	first := r.leader()
	open := make(gate)
	var n atomic.Int64
	w := r.hand("w", 2, func(a *messaging.Assignment) *messaging.Result {
		if n.Add(1) <= 10 {
			return completes(a)
		}
		return open.completes(a)
	})
	s := r.create(first, "between", 20, 2)
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Completed == 10 && s.Status.Counts.Running == 2 })
	first.stop()
	close(open)
	r.eventually(func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.spool) < 2 {
			return fmt.Errorf("%d results are spooled", len(w.spool))
		}
		return nil
	})
	r.broker.Recreate(messaging.StreamResult)
	bus := r.broker.Leader()
	defer bus.Close()
	r.eventually(func() error {
		last, err := bus.Last(r.t.Context(), messaging.StreamResult)
		// Each may still come for the first time, and both come again and again: among four are both.
		if err == nil && last < 4 {
			err = fmt.Errorf("the stream ends at %d", last)
		}
		return err
	})
	r.leader(func(o *Options) { o.HandBack = true })
	r.ends(s.ID)
	stored := r.verify(s.ID, 20, 20)
	for _, tr := range stored.Trials[10:12] {
		if len(tr.Attempts) != 1 {
			t.Errorf("trial %d was evaluated again: %+v", tr.Number, tr.Attempts)
		}
	}
}

// A queued trial whose assignment the broker has lost is published again.
func TestWipedAssignmentsArePublishedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.Engine.Republish = 200 * time.Millisecond })
	s := r.create(c, "stalled", 4, 2)
	r.until(s.ID, func(s ledger.Summary) bool {
		return s.Status.Counts.Queued > 0 && r.broker.Queued(study.DefaultPool) > 0
	})
	r.broker.WipeAssignments()
	r.hand("w", 2, nil)
	r.ends(s.ID)
	r.verify(s.ID, 4, 4)
}

// Assignments that the broker refuses are published again soon after it recovers,
// long before the outbox would (a minute).
func TestRefusedAssignmentsArePublishedSoon(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	r := newRig(t, membus.Options{Fault: func(e membus.Event) membus.Fault {
		return membus.Fault{Lost: e.Op == membus.OpAssign && refused.Add(1) <= 2}
	}})
	c := r.leader()
	r.hand("w", 2, nil)
	s := r.create(c, "refused", 4, 2)
	r.ends(s.ID)
	r.verify(s.ID, 4, 4)
}

// watched is a leader's bus. Whenever it buries the last message of a stream, it
// checks whether the ledger's cursor has already moved past that message.
type watched struct {
	messaging.Leader
	ledger *ledger.Ledger
	early  *atomic.Int64
}

func (w watched) Bury(ctx context.Context, subject, reason string, raw []byte) error {
	stream := messaging.StreamResult
	if s, err := messaging.ParseSubject(subject); err != nil {
		return err
	} else if s.Kind == messaging.KindClaim {
		stream = messaging.StreamClaim
	}
	snapshot, err := w.ledger.Load(ctx)
	if err != nil {
		return err
	}
	last, err := w.Last(ctx, stream)
	if err != nil {
		return err
	}
	if snapshot.Cursors[stream].Sequence >= last {
		w.early.Add(1)
	}
	return w.Leader.Bury(ctx, subject, reason, raw)
}

// watch puts a watched bus into the options.
func (r *rig) watch(early *atomic.Int64) func(*Options) {
	return func(o *Options) { o.Bus = watched{o.Bus, r.ledger, early} }
}

// An unreadable message is buried before the cursor moves past it, and the study
// continues. The sender of a result gets a receipt. An attempt that can no longer be
// claimed, because the message took the place of its claim, is replaced by the next.
func TestPoison(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	var early atomic.Int64
	c := r.leader(r.watch(&early))
	s := r.create(c, "poison", 3, 1)
	r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialQueued })
	id := messaging.AttemptID{Study: s.ID, Trial: 1, Attempt: 1}
	garbage := []byte(`{"version": 1, "study": `)
	w := r.hand("w", 0, nil) // hears, but claims nothing
	for _, subject := range []messaging.Subject{
		{Kind: messaging.KindResult, Shard: messaging.Shard, Worker: "w", ID: id},
		{Kind: messaging.KindClaim, Shard: messaging.Shard, Pool: study.DefaultPool, ID: id},
	} {
		if !r.broker.Inject(subject.String(), garbage) {
			t.Fatalf("nothing takes %s", subject)
		}
	}
	if got := w.heard(messaging.ControlReceipt, id); got.Disposition != "poison" {
		t.Errorf("the poison result was receipted as %q", got.Disposition)
	}
	tr := r.trial(s.ID, 1, func(tr *trialRecord) bool { return len(tr.Attempts) == 2 })
	if tr.Attempts[0].State != study.AttemptCancelled {
		t.Errorf("the attempt that nobody can claim is %s", tr.Attempts[0].State)
	}
	r.hand("v", 1, nil)
	r.ends(s.ID)
	r.verify(s.ID, 3, 3)
	dead := r.broker.DeadLetters()
	if len(dead) != 2 || !bytes.Equal(dead[0].Raw, garbage) || !bytes.Equal(dead[1].Raw, garbage) {
		t.Errorf("dead letters: %+v", dead)
	}
	if early.Load() != 0 {
		t.Error("a cursor had moved past a message before it was buried")
	}
}

// A claim with a wrong nonce spoils the attempt in the same way.
func TestForeignNonceInTheClaimsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "nonce", 2, 1)
	tr := r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialQueued })
	id := named(s.ID, &tr, 1)
	id.Nonce = "another"
	bus, err := r.broker.Worker("stranger", study.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Claim(r.ctx(), "1",
		&messaging.Claim{AttemptID: id, Pool: study.DefaultPool, Worker: "stranger", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	r.hand("w", 1, nil)
	r.ends(s.ID)
	r.verify(s.ID, 2, 2)
}

// A claim sent before its trial exists does not block that trial, whether the study is
// running or has ended and is resumed later.
func TestClaimsBeforeTheirTrials(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "early", 3, 1)
	r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialQueued })
	stranger := r.hand("stranger", 0, nil)
	early := func(trial int) {
		id := messaging.AttemptID{Study: s.ID, Trial: trial, Attempt: 1, Nonce: "another"}
		if err := stranger.bus.Claim(r.ctx(), "1",
			&messaging.Claim{AttemptID: id, Pool: study.DefaultPool, Worker: "stranger", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		stranger.heard(messaging.ControlCancel, id)
	}
	early(2)
	r.hand("w", 1, nil)
	r.ends(s.ID)
	r.verify(s.ID, 3, 3)
	early(4)
	if err := c.Update(r.ctx(), s.ID, newStudy("early", 5, 1), 0); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() == 5 })
	stored := r.verify(s.ID, 5, 5)
	for _, trial := range []int{2, 4} {
		if a := stored.Trials[trial-1].Attempts; len(a) != 2 || a[0].State != study.AttemptCancelled {
			t.Errorf("trial %d has the attempts %+v, want a cancelled one and the next", trial, a)
		}
	}
}

// The first result of an attempt counts. Any other one is late, whoever sends it. Both
// get a receipt.
func TestTwoResultsOfOneAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	var early atomic.Int64
	c := r.leader(r.watch(&early))
	r.hand("w", 1, nil)
	s := r.create(c, "twice", 3, 1)
	r.ends(s.ID)
	stored := r.verify(s.ID, 3, 3)
	id := named(s.ID, &stored.Trials[0], 1)
	other := r.hand("other", 0, nil)
	value := -1.0
	if err := other.bus.PublishResult(r.ctx(), &messaging.Result{AttemptID: id, Worker: "other", Outcome: messaging.OutcomeCompleted,
		Values: []float64{value}, Started: time.Now(), Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := other.heard(messaging.ControlReceipt, id); got.Disposition != "late" {
		t.Errorf("the second result was receipted as %q", got.Disposition)
	}
	if again := r.verify(s.ID, 3, 3); again.Trials[0].Values.First() != stored.Trials[0].Values.First() {
		t.Errorf("the value became %v, was %v", again.Trials[0].Values.First(), stored.Trials[0].Values.First())
	}
	if n := len(r.broker.DeadLetters()); n != 1 || early.Load() != 0 {
		t.Errorf("%d dead letters (%d after the cursor had moved), want the second result", n, early.Load())
	}
}

// A worker that is silent for a lease loses its attempts. If its result arrives after
// all, it counts unless another result came first; then it is buried.
func TestLateResultsOfLostAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.WorkerLease = 300 * time.Millisecond })
	open := make(gate)
	silent := r.hand("silent", 2, open.completes)
	s := r.create(c, "late", 2, 2, lostOften)
	for n := 1; n <= 2; n++ {
		r.trial(s.ID, n, func(tr *trialRecord) bool { return tr.State == study.TrialRunning })
	}
	silent.set(func() { silent.silent = true })
	// Both are lost. The next attempt of one keeps running, that of the other answers.
	var first atomic.Int64
	other := r.hand("other", 2, func(a *messaging.Assignment) *messaging.Result {
		if first.CompareAndSwap(0, int64(a.Trial)) {
			return completes(a)
		}
		return nil
	})
	s1 := r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Completed == 1 && s.Status.Counts.Running == 1 })
	answered, open2 := int(first.Load()), 3-int(first.Load())
	running := r.trial(s.ID, open2, func(tr *trialRecord) bool { return tr.State == study.TrialRunning })
	if a := running.Attempts[0]; a.State != study.AttemptLost || s1.Status.Counts.Failed != 0 {
		t.Errorf("the silent worker's attempt is %s", a.State)
	}
	close(open)
	won := r.trial(s.ID, open2, func(tr *trialRecord) bool { return tr.State == study.TrialCompleted })
	other.heard(messaging.ControlCancel, named(s.ID, &running, len(running.Attempts)))
	late := r.trial(s.ID, answered, func(tr *trialRecord) bool { return true })
	silent.heard(messaging.ControlReceipt, named(s.ID, &won, 1))
	if got := silent.heard(messaging.ControlReceipt, named(s.ID, &late, 1)); got.Disposition != "late" {
		t.Errorf("the result after another's was receipted as %q", got.Disposition)
	}
	r.ends(s.ID)
	r.verify(s.ID, 2, 2)
}

// An attempt that is handed back costs nothing, and its checkpoint goes with the next.
func TestHandBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	seen := make(chan string, 100)
	r.hand("w", 1, func(a *messaging.Assignment) *messaging.Result {
		seen <- a.Checkpoint
		if a.Attempt < 3 {
			return &messaging.Result{Outcome: messaging.OutcomeHandedBack, Checkpoint: fmt.Sprint("step ", a.Attempt)}
		}
		return completes(a)
	})
	s := r.create(c, "back", 1, 1)
	r.ends(s.ID)
	r.verify(s.ID, 1, 1)
	for _, want := range []string{"", "step 1", "step 2"} {
		if got := <-seen; got != want {
			t.Errorf("an attempt got the checkpoint %q, want %q", got, want)
		}
	}
}

// While the broker is away no heartbeat can arrive, so no worker is given up. The study
// continues when the broker is back.
func TestBrokerOutageLosesNobody(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	r := newRig(t, membus.Options{Fault: func(e membus.Event) membus.Fault { return membus.Fault{Lost: away.Load()} }})
	c := r.leader(func(o *Options) { o.LeaseTTL = 4 * time.Second })
	open := make(gate)
	r.hand("w", 2, open.completes)
	none := 0
	s := r.create(c, "outage", 6, 2, func(s *study.Spec) { s.Trial.Retries.Lost = &none })
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Running == 2 })
	away.Store(true)
	<-time.After(2*time.Second + lease.CheckEvery + lease.CheckEvery/2) // longer than a worker's lease
	away.Store(false)
	<-time.After(lease.CheckEvery + lease.CheckEvery/2) // leases are checked
	close(open)
	r.ends(s.ID)
	r.verify(s.ID, 6, 6)
}
