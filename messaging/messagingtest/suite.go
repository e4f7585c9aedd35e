// Package messagingtest is the conformance suite of the message buses: what a leader
// and its workers may rely on with any bus.
package messagingtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// Pool is the pool that the suite uses.
const Pool = study.DefaultPool

// patience limits every wait that should succeed, quiet every wait for something that
// should not come.
const (
	patience = time.Minute
	quiet    = 150 * time.Millisecond
)

// Bus is a broker under test. Its functions fail the test on errors; what they attach
// is closed when the test ends.
type Bus struct {
	// Leader attaches another leader; it is not set up.
	Leader func() messaging.Leader
	// Worker attaches another worker, named in the form of messaging.WorkerName.
	Worker func(name, pool string) messaging.Worker
	// Inject publishes bytes on a subject, as a broken sender would.
	Inject func(subject string, raw []byte)
	// Recreate deletes a stream and lets it be created again, empty. A leader must have
	// been set up.
	Recreate func(s messaging.Stream)
	// DeadLetters returns the raw messages in the dead-letter queue.
	DeadLetters func() [][]byte
	// AckWait is the time for which a fetched assignment is hidden; it is short.
	AckWait time.Duration
}

// Factory starts a broker for one test.
type Factory func(t *testing.T) *Bus

// Run runs the suite, each test on a broker of its own.
func Run(t *testing.T, factory Factory) {
	tests := []struct {
		name string
		run  func(*fixture)
	}{
		{"OneWinner", oneWinner},
		{"ClaimRetry", claimRetry},
		{"WithdrawRace", withdrawRace},
		{"WithdrawAgain", withdrawAgain},
		{"RecreatedStudyName", recreatedStudyName},
		{"AckIsNotOwnership", ackIsNotOwnership},
		{"UnacknowledgedComesAgain", unacknowledgedComesAgain},
		{"NakDelays", nakDelays},
		{"DeliveredTooOften", deliveredTooOften},
		{"AssignedAgain", assignedAgain},
		{"PoolsApart", poolsApart},
		{"FetchBeforeSetup", fetchBeforeSetup},
		{"Batch", batch},
		{"AssignNeedsFence", assignNeedsFence},
		{"OlderLeaderIsFenced", olderLeaderIsFenced},
		{"FenceOrder", fenceOrder},
		{"ResultAgain", resultAgain},
		{"ReadFromCursor", readFromCursor},
		{"RecreatedUnderReader", recreatedUnderReader},
		{"RecreatedWhileAway", recreatedWhileAway},
		{"RecreatedAndReplaced", recreatedAndReplaced},
		{"PoisonAssignment", poisonAssignment},
		{"PoisonEntries", poisonEntries},
		{"ForeignName", foreignName},
		{"OtherPoolsName", otherPoolsName},
		{"Bury", bury},
		{"RawEntry", rawEntry},
		{"Purge", purge},
		{"PurgeAll", purgeAll},
		{"Trim", trim},
		{"TrimOther", trimOther},
		{"Waiting", waiting},
		{"FirstClaim", firstClaim},
		{"KeepPools", keepPools},
		{"Measurements", measurements},
		{"Heartbeats", heartbeats},
		{"Controls", controls},
		{"Logs", logs},
		{"TraceContext", traceContext},
		{"ContextEnds", contextEnds},
		{"Closed", closed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			bus := *factory(t)
			attach := bus.Worker
			bus.Worker = func(name, pool string) messaging.Worker { return attach(messaging.WorkerName(pool, name), pool) }
			test.run(&fixture{T: t, Bus: &bus, ctx: ctx})
		})
	}
}

// fixture is a test, its broker, and shorthands that fail the test.
type fixture struct {
	*testing.T
	*Bus
	ctx context.Context
}

// ok fails the test at once on an error.
func (f *fixture) ok(err error, doing string, args ...any) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// want fails the test unless err is the wanted error.
func (f *fixture) want(err, wanted error, doing string, args ...any) {
	f.Helper()
	if !errors.Is(err, wanted) {
		f.Fatalf("%s: error is %v, want %v", fmt.Sprintf(doing, args...), err, wanted)
	}
}

// same checks that two values are the same; what names them, the first as - and the second as +.
func (f *fixture) same(what string, a, b any) {
	f.Helper()
	if diff := cmp.Diff(a, b); diff != "" {
		f.Errorf("%s:\n%s", what, diff)
	}
}

// leader attaches a leader, sets it up, and fences.
func (f *fixture) leader(epoch int64) messaging.Leader {
	f.Helper()
	l := f.Leader()
	f.ok(l.Setup(f.ctx, []string{Pool}), "set up")
	f.ok(l.Fence(f.ctx, epoch), "fence")
	return l
}

// pair returns a leader of epoch 1 and a worker w.
func (f *fixture) pair() (messaging.Leader, messaging.Worker) {
	f.Helper()
	return f.leader(1), f.Worker("w", Pool)
}

func (f *fixture) assign(l messaging.Leader, as ...*messaging.Assignment) {
	f.Helper()
	f.ok(l.Assign(f.ctx, as), "assign %d", len(as))
}

// fetch waits for an assignment that can be read.
func (f *fixture) fetch(w messaging.Worker) messaging.Delivery {
	f.Helper()
	d, err := w.Fetch(f.ctx)
	f.ok(err, "fetch")
	f.ok(d.Err(), "read the assignment")
	return d
}

// nothing checks that a worker is offered no assignment.
func (f *fixture) nothing(w messaging.Worker) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, quiet)
	defer cancel()
	d, err := w.Fetch(ctx)
	if err == nil {
		f.Fatalf("fetched %+v, want nothing", d.Assignment())
	}
	f.want(err, context.DeadlineExceeded, "fetch nothing")
}

func (f *fixture) openReader(l messaging.Leader, s messaging.Stream, from messaging.Cursor) messaging.Reader {
	f.Helper()
	r, err := l.Read(f.ctx, s, from)
	f.ok(err, "read %s", s)
	f.Cleanup(func() {
		if err := r.Close(); err != nil {
			f.Errorf("close the reader: %v", err)
		}
	})
	return r
}

func (f *fixture) next(r messaging.Reader) messaging.Entry {
	f.Helper()
	e, err := r.Next(f.ctx)
	f.ok(err, "next entry")
	return e
}

// end checks that a reader has nothing more.
func (f *fixture) end(r messaging.Reader) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, quiet)
	defer cancel()
	e, err := r.Next(ctx)
	if err == nil {
		f.Fatalf("read %+v, want nothing", e)
	}
	f.want(err, context.DeadlineExceeded, "read nothing")
}

// receive waits for a message of a subscription.
func receive[T any](f *fixture, c <-chan T) T {
	f.Helper()
	select {
	case v, ok := <-c:
		if !ok {
			f.Fatal("the channel is closed, want a message")
		}
		return v
	case <-f.ctx.Done():
		f.Fatal("no message came")
	}
	panic("unreachable")
}

func attempt(studyID string, trial int) messaging.AttemptID {
	return messaging.AttemptID{Study: studyID, Trial: trial, Attempt: 1, Nonce: fmt.Sprintf("nonce-%s-%d", studyID, trial)}
}

func assignment(studyID string, trial int) *messaging.Assignment {
	return &messaging.Assignment{
		Version:        messaging.SchemaVersion,
		AttemptID:      attempt(studyID, trial),
		Pool:           Pool,
		StudyName:      "digits",
		Seed:           7,
		Parameters:     study.Point{"rate": 3.0, "hidden": int64(3), "solver": "adam", "warm": true},
		ParameterOrder: []string{"rate", "hidden", "solver", "warm"},
		Objective:      study.Objective{Metric: "error", Direction: study.Minimize, Take: study.TakeLast},
		Run:            study.TrialTemplate{Command: []string{"python", "train.py"}, Mode: study.ModeProcess},
	}
}

func assignments(studyID string, n int) []*messaging.Assignment {
	as := make([]*messaging.Assignment, n)
	for i := range as {
		as[i] = assignment(studyID, i+1)
	}
	return as
}

// worker returns the wire name of a worker of Pool; the leader's name stays unchanged.
func worker(name string) string {
	if name == messaging.LeaderName {
		return name
	}
	return messaging.WorkerName(Pool, name)
}

func claim(id messaging.AttemptID, name string) *messaging.Claim {
	return &messaging.Claim{Version: messaging.SchemaVersion, AttemptID: id, Pool: Pool, Worker: worker(name),
		At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
}

func result(id messaging.AttemptID, name string, value float64) *messaging.Result {
	return &messaging.Result{Version: messaging.SchemaVersion, AttemptID: id, Worker: worker(name),
		Outcome: messaging.OutcomeCompleted, Values: []float64{value}, Metrics: map[string]float64{"error": value},
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Ended: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}
}
