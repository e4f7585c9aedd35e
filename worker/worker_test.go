package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
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
			if result.Outcome != messaging.OutcomeCompleted || result.Values.First() != x*x || result.Worker != testWorker || c.of(result.Trial) != 1 {
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

// waiting is an evaluation that tells when it has started and waits to be stopped.
func waiting(started chan<- int) evaluation.Func {
	return func(ctx context.Context, _ study.Point, task evaluation.Task) (float64, error) {
		started <- task.Assignment.Trial
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
}

func TestLeavingHandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan int, 2)
		r := newRig(t, waiting(started), membus.Options{})
		r.options.Slots = 2
		r.silent = true
		leave := r.start()
		r.offer(assigned(1), assigned(2), assigned(3))
		<-started
		<-started
		leave()
		synctest.Wait()
		for trial := 1; trial <= 2; trial++ {
			if told := r.told(trial); told[messaging.OutcomeHandedBack] != 1 {
				t.Errorf("trial %d: %v", trial, told)
			}
		}
		if len(r.seen().claims) != 2 || r.broker.Queued(testPool) != 1 {
			t.Errorf("%d claims, %d assignments queued: a leaving worker took more", len(r.seen().claims), r.broker.Queued(testPool))
		}
		if last := r.seen().lastBeat(); !last.Leaving || !sameTrials(last.Spooled, 1, 2) {
			t.Errorf("the last heartbeat: %+v", last)
		}
	})
}

func TestLeavingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan int, 1)
		r := newRig(t, func(_ context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			started <- task.Assignment.Trial
			<-task.Kill // it does not mind ctx
			return 0, errors.New("killed")
		}, membus.Options{Fault: func(e membus.Event) membus.Fault { return membus.Fault{Lost: e.Op == membus.OpResult} }})
		r.options.Drain = 10 * time.Second
		leave := r.start()
		r.offer(assigned(1))
		<-started
		begun := time.Now()
		leave()
		synctest.Wait()
		if took := time.Since(begun); took > r.options.Drain+time.Second {
			t.Errorf("Run ended %s after its context, with a drain of %s", took, r.options.Drain)
		}
		if len(r.spooled()) != 1 {
			t.Errorf("spooled %v", r.spooled())
		}
	})
}

func TestCancelEndsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan int, 1)
		r := newRig(t, waiting(started), membus.Options{})
		r.start()
		a := assigned(1)
		r.offer(a)
		<-started
		other := a.AttemptID
		other.Nonce = "another"
		r.control(t.Context(), messaging.ControlCancel, testWorker, other)
		synctest.Wait()
		r.control(t.Context(), messaging.ControlCancel, testWorker, a.AttemptID)
		r.offer(assigned(2))
		if trial := <-started; trial != 2 {
			t.Errorf("trial %d started, want 2", trial)
		}
		time.Sleep(time.Minute)
		if len(r.seen().results) != 0 || !sameTrials(r.seen().lastBeat().Running, 2) {
			t.Errorf("results %v, heartbeat %+v", r.seen().results, r.seen().lastBeat())
		}
	})
}

func TestPruneEndsAnAttemptWithAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan int, 1)
		r := newRig(t, waiting(started), membus.Options{})
		r.start()
		a := assigned(1)
		r.offer(a)
		<-started
		for range 2 { // it is told until the attempt has ended
			r.control(t.Context(), messaging.ControlPrune, testWorker, a.AttemptID)
		}
		r.offer(assigned(2))
		if trial := <-started; trial != 2 {
			t.Errorf("trial %d started, want 2", trial)
		}
		synctest.Wait()
		results := r.seen().results
		if len(results) != 1 || results[0].AttemptID != a.AttemptID || results[0].Outcome != messaging.OutcomePruned {
			t.Errorf("the results are %+v, want trial 1 pruned", results)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan int, 1)
		r := newRig(t, waiting(started), membus.Options{})
		r.start()
		a := assigned(1)
		a.Run.Timeout = study.Duration(10 * time.Minute)
		r.offer(a)
		begun := time.Now()
		<-started
		time.Sleep(9 * time.Minute)
		if len(r.told(1)) != 0 {
			t.Error("ended before its timeout")
		}
		time.Sleep(2 * time.Minute)
		if r.told(1)[messaging.OutcomeTimeout] != 1 {
			t.Errorf("after %s: %v", time.Since(begun), r.told(1))
		}
	})
}

func TestPanicFailsTheAttemptAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(context.Context, study.Point, evaluation.Task) (float64, error) { panic("oh") }, membus.Options{})
		r.start()
		r.offer(assigned(1), assigned(2))
		r.untilTold(2)
		if result := r.seen().results[0]; result.Outcome != messaging.OutcomeFailed || !strings.Contains(result.Failure.Message, "oh") {
			t.Errorf("%+v", result)
		}
	})
}

// What cannot be encoded would be tried for ever, and hold its trial open.
func TestResultThatCannotBeSentFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, membus.Options{})
		r.options.NewEvaluator = func(int) (evaluation.Evaluator, error) { return bad{}, nil }
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		if result := r.seen().results[0]; result.Outcome != messaging.OutcomeFailed || result.Failure.Reason != messaging.ReasonInvalid {
			t.Errorf("%+v", result)
		}
	})
}

// bad is an evaluator whose endings break the rules of results.
type bad struct{ evaluation.Func }

func (bad) Evaluate(context.Context, evaluation.Task) evaluation.Ending {
	return evaluation.Ending{Outcome: messaging.OutcomeCompleted, Values: []float64{math.NaN()}}
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

func TestMeasurementsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			for step := range 10_000 {
				task.Measure(int64(step), map[string]float64{"error": float64(step)})
				time.Sleep(time.Millisecond)
			}
			return 1, nil
		}, membus.Options{})
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		synctest.Wait()
		n := len(r.seen().measured)
		if most := 10*measurementsPerSecond + measurementBurst + maxWaiting; n > most || n < 10*measurementsPerSecond {
			t.Errorf("%d measurements in 10 s, want %d a second", n, measurementsPerSecond)
		}
		if last := r.seen().measured[n-1]; last.Step != 9_999 {
			t.Errorf("the last measurement is that of step %d", last.Step)
		}
	})
}

// Every report of a program that is not too fast for it arrives, in order, while
// the bus fails; those that are left at the attempt's end come later.
func TestMeasurementsArriveInOrder(t *testing.T) {
	const n = 80
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		r := newRig(t, func(_ context.Context, _ study.Point, job evaluation.Task) (float64, error) {
			for step := range n {
				job.Measure(int64(step), map[string]float64{"error": 1})
				time.Sleep(10 * time.Millisecond)
			}
			return 1, nil
		}, membus.Options{Fault: func(e membus.Event) membus.Fault {
			if e.Op != membus.OpMetric {
				return membus.Fault{}
			}
			switch k := tries.Add(1); {
			case k%5 == 0:
				return membus.Fault{Lost: true}
			case k%7 == 0:
				return membus.Fault{Unanswered: true}
			}
			return membus.Fault{}
		}})
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		r.until("the last report", func() bool { return len(r.measured) > 0 && r.measured[len(r.measured)-1].Step == n-1 })
		next := int64(0)
		for _, m := range r.seen().measured {
			if m.Step > next {
				t.Fatalf("step %d came before step %d", m.Step, next)
			}
			next = max(next, m.Step+1)
		}
	})
}

// Of what waits, the last report of each metric is never dropped.
func TestThinningKeepsEachMetricsLast(t *testing.T) {
	m := newMeasurer(&run{measuring: t.Context(), options: Options{Logger: slog.New(slog.DiscardHandler)}})
	m.done = make(chan struct{}) // nothing is published
	for step := range int64(1000) {
		metrics := map[string]float64{"often": 1}
		if step == 3 || step == 500 {
			metrics = map[string]float64{fmt.Sprint("rare", step): 1}
		}
		m.add(&messaging.Measurement{Step: step, Metrics: metrics})
	}
	last, before := map[string]int64{}, int64(-1)
	for _, w := range m.waiting {
		for metric := range w.Metrics {
			last[metric] = w.Step
		}
		if w.Step <= before {
			t.Fatalf("step %d is after %d", w.Step, before)
		}
		before = w.Step
	}
	if len(m.waiting) > maxWaiting || last["often"] != 999 || last["rare3"] != 3 || last["rare500"] != 500 || m.waiting[0].Step != 0 {
		t.Errorf("%d wait, from step %d, and the last are %v", len(m.waiting), m.waiting[0].Step, last)
	}
}

func TestFewMeasurementsAllArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			for step := range task.Assignment.Trial {
				task.Measure(int64(step), map[string]float64{"error": 1})
			}
			if task.Assignment.Trial == 2 {
				time.Sleep(time.Second)
			}
			return 1, nil
		}, membus.Options{})
		r.start()
		r.offer(assigned(1), assigned(2), assigned(measurementBurst))
		r.untilTold(measurementBurst)
		synctest.Wait()
		of := map[int]int{}
		for _, m := range r.seen().measured {
			of[m.Trial]++
		}
		// The single report of trial 1 is in its result.
		if of[1] != 0 || of[2] != 2 || of[measurementBurst] != measurementBurst {
			t.Errorf("measurements of each trial: %v", of)
		}
	})
}

func TestFolderIsOneWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(calls).square, membus.Options{})
		r.start()
		synctest.Wait()
		wait, _ := r.run(r.options)
		if err := wait(); !errors.Is(err, ErrStateLocked) {
			t.Errorf("Run: %v, want ErrStateLocked", err)
		}
		bus, err := r.broker.Worker(testWorker, testPool)
		if err != nil {
			t.Fatal(err)
		}
		defer bus.Close()
		if _, err := FlushSpool(t.Context(), bus, r.options.StateDir); !errors.Is(err, ErrStateLocked) {
			t.Errorf("FlushSpool: %v, want ErrStateLocked", err)
		}
	})
}

func TestClosedBusEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(calls).square, membus.Options{})
		o := r.options
		bus, err := r.broker.Worker(o.Name, testPool)
		if err != nil {
			t.Fatal(err)
		}
		o.Bus = bus
		w, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		closing := time.AfterFunc(time.Second, func() { _ = bus.Close() })
		defer closing.Stop()
		if err := w.Run(t.Context()); !errors.Is(err, messaging.ErrClosed) {
			t.Errorf("Run: %v, want ErrClosed", err)
		}
	})
}

// deaf is a bus whose server does not answer: whatever waits for it waits until
// its context ends.
type deaf struct{ messaging.Worker }

func (deaf) Controls(ctx context.Context) (<-chan messaging.Control, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (deaf) Fetch(ctx context.Context) (messaging.Delivery, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (deaf) Heartbeat(ctx context.Context, _ *messaging.Heartbeat) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestLeavesThoughNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.Name, o.StateDir, o.Bus = testWorker, t.TempDir(), deaf{}
		w, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun) - time.Minute; took > 2*replyTimeout {
			t.Errorf("Run ended %s after its context", took)
		}
	})
}

func TestTwoWorkersInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		r.start()
		o := r.options
		o.Name, o.StateDir = "another", t.TempDir()
		wait, cancel := r.run(o)
		for trial := 1; trial <= 30; trial++ {
			r.offer(assigned(trial))
		}
		r.until("30 results", func() bool { return len(r.results) >= 30 })
		cancel()
		if err := wait(); err != nil {
			t.Error(err)
		}
		for trial := 1; trial <= 30; trial++ {
			if c.of(trial) != 1 {
				t.Errorf("trial %d was evaluated %d times", trial, c.of(trial))
			}
		}
	})
}

func TestNameIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := Name(dir)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Name(dir); err != nil || second != first {
		t.Errorf("%q, %v; want %q", second, err, first)
	}
	if !messaging.ValidToken(first) {
		t.Errorf("%q is no valid name", first)
	}
	if other, err := Name(t.TempDir()); err != nil || other == first {
		t.Errorf("another folder: %q, %v", other, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
