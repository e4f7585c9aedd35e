package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/spool"
)

func TestTrialsAreEvaluatedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		r.options.Slots = 3
		leave := r.start()
		for trial := 1; trial <= 20; trial++ {
			r.offer(assigned(trial))
		}
		r.until("20 results", func() bool { return len(r.results) == 20 })
		synctest.Wait()
		leave()
		synctest.Wait()
		for _, result := range r.seen().results {
			x := float64(result.Trial)
			if result.Outcome != messaging.OutcomeCompleted || result.Values.First() != x*x || result.Worker != testWorker ||
				c.of(result.Trial) != 1 {
				t.Errorf("trial %d, evaluated %d times: %+v", result.Trial, c.of(result.Trial), result)
			}
			if result.Started.IsZero() || result.Ended.Before(result.Started) {
				t.Errorf("trial %d: from %s to %s", result.Trial, result.Started, result.Ended)
			}
		}
		if n := r.broker.Queued(testPool); n != 0 {
			t.Errorf("%d assignments are still queued", n)
		}
		if files := r.spooled(); len(files) != 0 {
			t.Errorf("spooled after all receipts: %v", files)
		}
		if last := r.seen().lastBeat(); !last.Leaving || len(last.Running) != 0 || len(last.Spooled) != 0 {
			t.Errorf("the last heartbeat: %+v", last)
		}
	})
}

// moving is an evaluator whose attempts run elsewhere than was known before.
type moving struct{}

func (moving) Accept(*messaging.Assignment) error { return nil }
func (moving) Close(context.Context) error        { return nil }
func (moving) Job(a *messaging.Assignment) string { return fmt.Sprint("job-", a.Trial) }
func (moving) Evaluate(context.Context, evaluation.Task) evaluation.Ending {
	e := evaluation.Failed("x", "y")
	e.Site = messaging.Site{Node: "n18", Devices: strings.Repeat("d", messaging.MaxSite+1)}
	return e
}

// A claim says where the attempt will run, and its result what the evaluator has learned of it since.
func TestSiteIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, membus.Options{})
		r.options.NewEvaluator = func(int) (evaluation.Evaluator, error) { return moving{}, nil }
		r.options.GPUs, r.options.Site = "0-1", messaging.Site{Job: "4711_2", Node: "n17"}
		leave := r.start()
		r.offer(assigned(1))
		r.until("a result", func() bool { return len(r.results) == 1 })
		synctest.Wait()
		leave()
		synctest.Wait()
		seen := r.seen()
		if diff := cmp.Diff(&messaging.Site{Job: "job-1", Node: "n17", Devices: "0,1"}, seen.claims[0].Site); diff != "" {
			t.Errorf("the claim: %s", diff)
		}
		if diff := cmp.Diff(&messaging.Site{Job: "job-1", Node: "n18", Devices: strings.Repeat("d", messaging.MaxSite)},
			seen.results[0].Site); diff != "" {
			t.Errorf("the result: %s", diff)
		}
	})
}

// Measured with JetStream: after an ack, a late duplicate of an assignment is
// stored and delivered again; once claims are purged its claim would succeed too.
func TestAttemptOfferedAgainIsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		leave := r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		r.offer(assigned(1))
		synctest.Wait()
		r.broker.Recreate(messaging.StreamClaim)
		r.offer(assigned(1))
		synctest.Wait()
		leave()
		synctest.Wait()
		// The next process remembers as well.
		r.start()
		r.offer(assigned(1), assigned(2))
		r.untilTold(2)
		if c.of(1) != 1 {
			t.Errorf("evaluated %d times", c.of(1))
		}
		synctest.Wait()
		if n := r.broker.Queued(testPool); n != 0 {
			t.Errorf("%d assignments are still queued", n)
		}
	})
}

// A process was killed while an attempt ran, and the broker lost its claim. The next process
// claims the attempt, so that the leader can see that it is lost, but does not run it.
func TestClaimLostByTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		stored, err := spool.OpenClaims(filepath.Join(r.options.StateDir, "claims"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stored.Add(assigned(1).AttemptID), stored.Close()); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.offer(assigned(1), assigned(2))
		r.untilTold(2)
		synctest.Wait()
		claims := r.seen().claims
		if c.of(1) != 0 || len(claims) != 2 {
			t.Errorf("evaluated %d times, claims %+v", c.of(1), claims)
		}
		if n := r.broker.Queued(testPool); n != 0 {
			t.Errorf("%d assignments are still queued", n)
		}
	})
}

func TestAttemptIsNotRunTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		release := make(chan struct{})
		r := newRig(t, func(ctx context.Context, p study.Point, task evaluation.Task) (float64, error) {
			<-release
			return c.square(ctx, p, task)
		}, membus.Options{})
		r.options.Slots = 2
		r.start()
		r.offer(assigned(1), assigned(1))
		synctest.Wait()
		close(release)
		r.untilTold(1)
		synctest.Wait()
		if c.of(1) != 1 || len(r.seen().claims) != 1 {
			t.Errorf("evaluated %d times with %d claims", c.of(1), len(r.seen().claims))
		}
	})
}

func TestClaimLostToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		other, err := r.broker.Worker("other", testPool)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		a := assigned(1)
		claim := &messaging.Claim{Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Pool: testPool, Worker: "other", At: time.Now()}
		if err := other.Claim(t.Context(), "id", claim); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.offer(a, assigned(2))
		r.untilTold(2)
		synctest.Wait()
		if c.of(1) != 0 || r.broker.Queued(testPool) != 0 {
			t.Errorf("evaluated %d times, %d assignments queued", c.of(1), r.broker.Queued(testPool))
		}
	})
}

// Whatever message or answer is lost once, each trial is evaluated once and told.
func TestLostMessages(t *testing.T) {
	for _, op := range []membus.Op{membus.OpFetch, membus.OpClaim, membus.OpAck, membus.OpResult, membus.OpMetric, membus.OpHeartbeat} {
		for _, fault := range []membus.Fault{{Lost: true}, {Unanswered: true}, {Copies: 1}, {Delay: 7 * time.Second}} {
			t.Run(fmt.Sprintf("%s %+v", op, fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c calls
					var faults atomic.Int32
					r := newRig(t, c.square, membus.Options{Fault: func(e membus.Event) membus.Fault {
						if e.Op == op && faults.Add(1) <= 1 {
							return fault
						}
						return membus.Fault{}
					}})
					r.start()
					r.offer(assigned(1))
					r.untilTold(1)
					time.Sleep(5 * time.Minute) // redeliveries and re-sends come to rest
					if c.of(1) != 1 || r.broker.Queued(testPool) != 0 || len(r.spooled()) != 0 {
						t.Errorf("evaluated %d times, %d assignments queued, spooled %v", c.of(1), r.broker.Queued(testPool), r.spooled())
					}
				})
			})
		}
	}
}

// Measured with JetStream: a leader that dies between commit and receipt leaves
// a worker whose result is acknowledged but never receipted.
func TestResultIsSentUntilItsReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		r.silent = true
		r.start()
		r.offer(assigned(1), assigned(2))
		r.untilTold(2)
		time.Sleep(4 * time.Minute)
		// 5 s, 10 s, 20 s, 40 s, and then each minute: 7 more times in 4 minutes.
		if n := r.told(1)[messaging.OutcomeCompleted]; n < 6 || n > 9 {
			t.Errorf("told %d times in 4 minutes, want 5 s to 60 s between", n)
		}
		if len(r.spooled()) != 2 || !sameTrials(r.seen().lastBeat().Spooled, 1, 2) {
			t.Errorf("spooled %v; heartbeat %+v", r.spooled(), r.seen().lastBeat())
		}
		r.change(func() { r.silent = false })
		time.Sleep(2 * time.Minute)
		n := r.told(1)[messaging.OutcomeCompleted]
		time.Sleep(10 * time.Minute)
		if len(r.spooled()) != 0 || r.told(1)[messaging.OutcomeCompleted] != n {
			t.Errorf("after the receipt: spooled %v", r.spooled())
		}
		if c.of(1) != 1 {
			t.Errorf("evaluated %d times", c.of(1))
		}
	})
}

func TestFullSpoolTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		r.silent = true
		r.options.SpoolLimit = 3
		r.start()
		for trial := 1; trial <= 6; trial++ {
			r.offer(assigned(trial))
		}
		time.Sleep(time.Minute)
		if len(r.seen().claims) != 3 {
			t.Errorf("%d claims with room for 3 results", len(r.seen().claims))
		}
		r.change(func() { r.silent = false })
		time.Sleep(5 * time.Minute)
		if len(r.seen().claims) != 6 || len(r.spooled()) != 0 {
			t.Errorf("%d claims, spooled %v", len(r.seen().claims), r.spooled())
		}
	})
}

// An assignment that is delivered to a second slot while the first one still claims it in
// vain is not lost: it is delivered again.
func TestSecondDeliveryWhileAClaimFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		const healed = claimTimeout + time.Second
		begun := time.Now()
		r := newRig(t, c.square, membus.Options{Fault: func(e membus.Event) membus.Fault {
			return membus.Fault{Lost: e.Op == membus.OpClaim && time.Since(begun) < healed}
		}})
		r.options.Slots = 2
		r.start()
		r.offer(assigned(1))
		time.Sleep(healed)
		r.untilTold(1)
		if c.of(1) != 1 {
			t.Errorf("evaluated %d times", c.of(1))
		}
	})
}

func TestAvoidedStudyIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		r.start()
		synctest.Wait()
		r.control(t.Context(), messaging.ControlAvoid, testWorker, messaging.AttemptID{Study: "study-id"})
		synctest.Wait()
		other := assigned(2)
		other.Study = "another"
		r.offer(assigned(1), other)
		r.untilTold(2)
		time.Sleep(time.Second)
		if c.of(1) != 0 || r.broker.Queued(testPool) != 1 {
			t.Errorf("evaluated %d times, %d assignments queued", c.of(1), r.broker.Queued(testPool))
		}
	})
}

func TestStudyCommandsNeedLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, membus.Options{})
		r.start()
		r.offer(assigned(1))
		time.Sleep(time.Second)
		if len(r.seen().claims) != 0 || r.broker.Queued(testPool) != 1 {
			t.Errorf("%d claims, %d assignments queued", len(r.seen().claims), r.broker.Queued(testPool))
		}
		if b := r.seen().beats[0]; b.StudyCommands {
			t.Errorf("heartbeat %+v", b)
		}
	})
}

// A worker without an evaluator of its own runs programs.
func TestHeartbeatSaysWhatRuns(t *testing.T) {
	for _, test := range []struct {
		name       string
		evaluate   bool
		says, want string
	}{
		{"programs", false, "", messaging.RunsCommand},
		{"programs, whatever the option says", false, messaging.RunsSidecar, messaging.RunsCommand},
		{"an evaluator that has a name", true, messaging.RunsSidecar, messaging.RunsSidecar},
		{"an evaluator without a name", true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c calls
				evaluate := c.square
				if !test.evaluate {
					evaluate = nil
				}
				r := newRig(t, evaluate, membus.Options{})
				r.options.Runs = test.says
				r.start()
				synctest.Wait()
				if got := r.seen().beats[0].Runs; got != test.want {
					t.Errorf("the heartbeat says that it runs %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestPoisonAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		if !r.broker.Inject(assigned(9).Subject(messaging.Shard), []byte(`{"version": 1, "study`)) {
			t.Fatal("not injected")
		}
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		if n := len(r.broker.DeadLetters()); n != 1 || r.broker.Queued(testPool) != 0 {
			t.Errorf("%d dead letters, %d assignments queued", n, r.broker.Queued(testPool))
		}
	})
}

// A slot that takes one trial after another causes no heartbeats beside those of the interval,
// but one soon after it has become free.
func TestABusySlotCausesNoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trials = 60
		r := newRig(t, func(context.Context, study.Point, evaluation.Task) (float64, error) {
			time.Sleep(time.Second)
			return 1, nil
		}, membus.Options{})
		r.start()
		for i := range trials {
			r.offer(assigned(i + 1))
		}
		time.Sleep(time.Second / 2)
		if last := r.seen().lastBeat(); last.Free != 0 {
			t.Errorf("after the first claim: %+v", last)
		}
		begun := len(r.seen().beats)
		r.untilTold(trials)
		if n := len(r.seen().beats) - begun; n < 11 || n > 13 {
			t.Errorf("%d heartbeats in a minute of short trials, want one each 5 s", n)
		}
		time.Sleep(time.Second)
		if last := r.seen().lastBeat(); last.Free != 1 || len(last.Running) != 0 {
			t.Errorf("a second after the last trial: %+v", last)
		}
	})
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan int, 1)
		r := newRig(t, waiting(started), membus.Options{})
		r.options.Slots = 2
		leave := r.start()
		r.offer(assigned(1))
		<-started
		time.Sleep(time.Second) // well below the interval: a change is told at once
		last := r.seen().lastBeat()
		if !sameTrials(last.Running, 1) || last.Free != 1 || last.Slots != 2 || last.Pool != testPool || last.Leaving {
			t.Errorf("after the claim: %+v", last)
		}
		before := len(r.seen().beats)
		time.Sleep(time.Minute)
		if n := len(r.seen().beats) - before; n < 11 || n > 13 {
			t.Errorf("%d heartbeats in a minute, want one each 5 s", n)
		}
		instance := last.Instance
		leave()
		synctest.Wait()
		r.start()
		synctest.Wait()
		if last := r.seen().lastBeat(); last.Instance == instance || last.Instance == "" {
			t.Errorf("instance %q after %q", last.Instance, instance)
		}
	})
}
