package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// elsewhere is where evaluations go on while no worker runs.
type elsewhere struct {
	mu      sync.Mutex
	begun   []evaluation.Recovered
	settled []int
	stored  []int
	err     error
}

func (e *elsewhere) Recover(context.Context) ([]evaluation.Recovered, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.begun), e.err
}

func (e *elsewhere) MarkEnded(_ context.Context, a *messaging.Assignment) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settled = append(e.settled, a.Trial)
	return nil
}

func (e *elsewhere) MarkStored(_ context.Context, id messaging.AttemptID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stored = append(e.stored, id.Trial)
	return nil
}

func (e *elsewhere) known() []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.stored)
}

func (e *elsewhere) trials() []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.settled)
}

// TestWhatAnEarlierProcessBeganGoesOn holds that attempts that outlived a process
// are in the next one's first heartbeat, run once, without another claim, even
// where there are more of them than slots, and where their assignment comes again.
func TestWhatAnEarlierProcessBeganGoesOn(t *testing.T) {
	var c calls
	hold := make(chan struct{})
	r := newRig(t, func(ctx context.Context, p study.Point, task evaluation.Task) (float64, error) {
		select {
		case <-hold:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		return c.square(ctx, p, task)
	}, membus.Options{})
	began := time.Now().Add(-time.Minute)
	keeper := &elsewhere{begun: []evaluation.Recovered{{Assignment: assigned(1), Started: began}, {Assignment: assigned(2), Started: began}}}
	r.options.Keeper = keeper
	earlier, err := r.broker.Worker(testWorker, testPool)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range keeper.begun {
		claim := &messaging.Claim{Version: messaging.SchemaVersion, AttemptID: b.Assignment.AttemptID, Pool: testPool, Worker: testWorker,
			At: began}
		if err := earlier.Claim(t.Context(), fmt.Sprint(b.Assignment.Trial), claim); err != nil {
			t.Fatal(err)
		}
	}
	if err := earlier.Close(); err != nil {
		t.Fatal(err)
	}
	r.offer(assigned(1), assigned(3)) // the first again
	r.start()
	r.until("a heartbeat", func() bool { return len(r.beats) > 0 })
	if first := r.seen().beats[0]; !sameTrials(first.Running, 1, 2) || first.Free != 0 {
		t.Errorf("the first heartbeat says that %v run and %d slots are free", first.Running, first.Free)
	}
	close(hold)
	for trial := 1; trial <= 3; trial++ {
		r.untilTold(trial)
		if n := c.of(trial); n != 1 {
			t.Errorf("trial %d was evaluated %d times", trial, n)
		}
	}
	r.until("three claims", func() bool { return len(r.claims) >= 3 }) // claims and results come by ways of their own
	seen := r.seen()
	if len(seen.claims) != 3 || seen.claims[2].Trial != 3 {
		t.Errorf("claimed %v, want trial 3 after the earlier process's two", seen.claims)
	}
	for _, result := range seen.results {
		if result.Trial < 3 && !result.Started.Equal(began) {
			t.Errorf("trial %d was started at %v, want %v", result.Trial, result.Started, began)
		}
	}
	r.options.Keeper = nil
	for !slices.Contains(keeper.trials(), 3) { // after the result was spooled, soon
		if t.Context().Err() != nil {
			t.Fatal("trial 3 is not settled")
		}
		r.until("another heartbeat", func() bool { return len(r.beats) > len(seen.beats) })
		seen = r.seen()
	}
	id := assigned(3).AttemptID
	receipt := &messaging.Control{Version: messaging.SchemaVersion, Kind: messaging.ControlReceipt, Worker: testWorker, AttemptID: id}
	if err := r.leader.Control(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	for !slices.Contains(keeper.known(), 3) {
		r.until("another heartbeat", func() bool { return len(r.beats) > len(seen.beats) })
		seen = r.seen()
	}
	if got := keeper.trials(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("settled %v, want each trial once", got)
	}
}

// keeping is an evaluator whose evaluations go on when the worker leaves.
type keeping struct{ evaluation.Func }

func (k keeping) Evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	<-ctx.Done()
	return evaluation.Ending{Kept: true}
}

// TestWhatGoesOnHasNoResult holds that a worker that leaves says nothing of what
// goes on without it, but that it was running it.
func TestWhatGoesOnHasNoResult(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	keeper := &elsewhere{}
	r.options.Keeper = keeper
	r.options.NewEvaluator = func(int) (evaluation.Evaluator, error) { return keeping{}, nil }
	r.offer(assigned(1))
	leave := r.start()
	r.until("the claim", func() bool { return len(r.claims) == 1 })
	leave()
	if seen := r.seen(); len(seen.results) != 0 || len(r.spooled()) != 0 || len(keeper.trials()) != 0 {
		t.Errorf("told %v, spooled %v, settled %v, want nothing", seen.results, r.spooled(), keeper.trials())
	}
}

// TestALateRecoveryTimesOut holds that a timeout counts from the first start.
func TestALateRecoveryTimesOut(t *testing.T) {
	r := newRig(t, func(ctx context.Context, _ study.Point, _ evaluation.Task) (float64, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}, membus.Options{})
	a := assigned(1)
	a.Run.Timeout = study.Duration(30 * time.Second)
	r.options.Keeper = &elsewhere{begun: []evaluation.Recovered{{Assignment: a, Started: time.Now().Add(-time.Minute)}},
		err: errors.New("the rest cannot be seen")}
	r.start()
	r.untilTold(1)
	if told := r.told(1); told[messaging.OutcomeTimeout] != 1 {
		t.Errorf("told %v, want a timeout", told)
	}
}
