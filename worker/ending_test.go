package worker

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

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

// timing is an evaluator that ends attempts by their timeout itself.
type timing struct{ evaluation.Func }

func (timing) TimesOut() {}

func (timing) Job(*messaging.Assignment) string { return "job" }

// While the program of a job has not started, heartbeats say why, and its evaluator decides about its timeout.
func TestWaitsBeforeItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admitted := make(chan struct{})
		evaluate := evaluation.Func(func(ctx context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			task.Waiting("no node")
			<-admitted
			task.Waiting("")
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		r := newRig(t, evaluate, membus.Options{})
		r.options.NewEvaluator = func(int) (evaluation.Evaluator, error) { return timing{evaluate}, nil }
		r.start()
		a := assigned(1)
		a.Run.Timeout = study.Duration(time.Minute)
		r.offer(a)
		time.Sleep(time.Second)
		if beat := r.seen().lastBeat(); beat.Causes()[a.AttemptID] != "no node" || len(beat.Begun) != 0 {
			t.Errorf("a second after its start the worker says %+v", beat)
		}
		time.Sleep(time.Hour)
		if len(r.told(1)) != 0 {
			t.Errorf("it has ended before it has started: %v", r.told(1))
		}
		close(admitted)
		time.Sleep(time.Second)
		if beat := r.seen().lastBeat(); len(beat.Waiting) != 0 || !slices.Equal(beat.Begun, []int{0}) {
			t.Errorf("after its start the worker says %+v", beat)
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
