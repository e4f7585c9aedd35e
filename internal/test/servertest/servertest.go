// Package servertest is the backend of a real coordinator over an etcd in memory, for tests of the API
// and of its clients. Nothing is evaluated: tests write trials, curves and states into its ledger.
package servertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/app/backend"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/test/testleader"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Epoch is when every study was created and started.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Backend is the backend of a leader. What tests write into its ledger is read like anything else,
// but the leader, which has read the ledger before, does not know of it. Safe for concurrent use.
type Backend struct {
	*backend.Backend

	t      testing.TB
	leader *testleader.Replica
	ledger *ledger.Ledger

	mu      sync.Mutex // nobody changes a record between a read and a write of it
	made    int
	workers []coordinator.Worker
	logs    map[string][]coordinator.LogPart // by id and trial
}

// thinking is an optimiser that answers when the test has ended, whatever its context says: so there are
// no trials but those of the test, and the engine does not write over what the test has written.
type thinking struct{ ended <-chan struct{} }

// Suggest implements optimizer.Optimizer.
func (o thinking) Suggest(_ context.Context, _ *optimizer.Problem, s optimizer.State, _ int, _ *rand.Rand) (
	[]optimizer.Suggestion, optimizer.State, error) {
	<-o.ended
	return nil, s, context.Canceled
}

// New starts a coordinator with an archive, which leads when New returns. It ends with the test. A
// worker has been heard, so that no study says that it lacks one.
func New(t testing.TB) *Backend {
	t.Helper()
	dir, err := archive.Open(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	leader, broker := testleader.Lead(t, func(o *coordinator.Options) {
		o.Archive, o.WorkerLease = dir, time.Hour
		o.NewOptimizer = func(study.Algorithm) (optimizer.Optimizer, error) { return thinking{ended}, nil }
		o.NewFallback = nil
	})
	t.Cleanup(func() { close(ended) }) // before the leader ends, which waits for it
	l := ledger.New(leader.Etcd.Client, ledger.Options{})
	bus, err := broker.Worker("w", "default")
	if err != nil {
		t.Fatal(err)
	}
	for beat := 0; len(leader.Workers()) == 0; beat++ { // the leader may not listen yet
		err := bus.Heartbeat(t.Context(), &messaging.Heartbeat{Worker: "w", Pool: "default", Instance: "1", Slots: 1, At: time.Now(),
			StudyCommands: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(beat) * time.Millisecond)
	}
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	return &Backend{Backend: backend.New(leader.Coordinator, l), t: t, leader: leader, ledger: l, logs: map[string][]coordinator.LogPart{}}
}

// Create implements server.Backend. The studies have the ids ID1, ID2 and so on, and the age of Epoch.
func (b *Backend) Create(ctx context.Context, text []byte) (server.Study, error) {
	return b.CreateAs(ctx, "", text)
}

// CreateAs is Create under another name, such as that of a resource of Kubernetes; "" is the file's.
func (b *Backend) CreateAs(ctx context.Context, name string, text []byte) (server.Study, error) {
	s, err := inject.ParseStudy("", text)
	if err != nil {
		return server.Study{}, err
	}
	s.Metadata.Name = cmp.Or(name, s.Metadata.Name)
	b.mu.Lock()
	b.made++
	id := fmt.Sprint("ID", b.made)
	b.mu.Unlock()
	if _, err := b.leader.CreateWithID(ctx, id, s); err != nil {
		return server.Study{}, err
	}
	b.Change(id, func(s *server.Study) { //nolint:contextcheck // a test's
		s.Spec.Created, s.Status.Started, s.Status.Counted, s.Status.Since, s.Status.Ran = Epoch, Epoch, Epoch, Epoch, 0
	})
	return b.Study(ctx, id)
}

// Change lets f change a study. Its best trial and its recommendation are those that f leaves, or
// if f leaves none, those of the status.
func (b *Backend) Change(nameOrID string, f func(*server.Study)) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	stored, err := b.ledger.Study(context.Background(), nameOrID)
	if err != nil {
		b.t.Error(err)
		return
	}
	s := server.Study{Spec: stored.Study, Status: stored.Status}
	f(&s)
	if s.Best != nil {
		s.Status.Best = s.Best.Number
	}
	if s.Recommended != nil {
		s.Status.Recommended = record.Recommended(s.Recommended, s.Status.Position)
	}
	head := struct {
		record.Study
		Bytes int64 `json:"bytes"`
	}{s.Spec, ledger.Size(&s.Spec)}
	head.Definition = *s.Spec.Definition.Head()
	dir := "studies/" + s.Spec.ID
	b.put(b.record(dir+"/spec", &s.Spec), b.record(dir+"/head", head), b.record(dir+"/status", s.Status))
}

// Put adds or replaces trials of a study.
func (b *Backend) Put(nameOrID string, trials ...record.Trial) {
	b.t.Helper()
	id := b.id(context.Background(), nameOrID)
	for some := range slices.Chunk(trials, 100) { // etcd accepts 128 operations at once
		var ops []clientv3.Op
		for i := range some {
			ops = append(ops, b.record(fmt.Sprintf("studies/%s/trials/%08d", id, some[i].Number), &some[i]))
		}
		b.put(ops...)
	}
}

// PutMeasurements adds or replaces the measurements of a trial.
func (b *Backend) PutMeasurements(nameOrID string, measured curve.Reported) {
	b.t.Helper()
	c := curve.New(measured.Attempt)
	steps := map[int64]map[string]float64{}
	for _, s := range measured.Series {
		for _, p := range s.Points {
			if steps[p.Step] == nil {
				steps[p.Step] = map[string]float64{}
			}
			steps[p.Step][s.Metric] = p.Value
		}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		c.Add(step, steps[step])
	}
	changed, _ := c.Changes(measured.Trial)
	dir := fmt.Sprintf("curves/%s/%08d/", b.id(context.Background(), nameOrID), measured.Trial)
	end := ledger.DefaultPrefix + dir
	ops := []clientv3.Op{clientv3.OpDelete(fmt.Sprintf("%s%06d", end, changed.Length), clientv3.WithRange(clientv3.GetPrefixRangeEnd(end)))}
	for _, s := range changed.Segments {
		ops = append(ops, b.record(fmt.Sprintf("%s%06d", dir, s.Number), s.Data))
	}
	b.put(ops...)
}

func (b *Backend) id(ctx context.Context, nameOrID string) string {
	b.t.Helper()
	id, err := b.ledger.ID(ctx, nameOrID)
	if err != nil {
		b.t.Error(err)
	}
	return id
}

func (b *Backend) record(key string, v any) clientv3.Op {
	b.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		b.t.Error(err)
	}
	key = ledger.DefaultPrefix + key
	return clientv3.OpPut(key, seal.Seal(key, text))
}

func (b *Backend) put(ops ...clientv3.Op) {
	b.t.Helper()
	if _, err := b.leader.Etcd.Txn(context.Background()).Then(ops...).Commit(); err != nil {
		b.t.Error(err)
	}
}

// SetWorkers sets what Workers returns: tests choose when their workers were seen, and what they say.
func (b *Backend) SetWorkers(workers ...coordinator.Worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers = workers
}

// Workers implements server.Backend.
func (b *Backend) Workers(context.Context) ([]coordinator.Worker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.workers), nil
}

// PutLog adds a part to the log of a study's trial, in place of a worker that is asked for it.
func (b *Backend) PutLog(nameOrID string, trial int, p coordinator.LogPart) {
	b.t.Helper()
	key := fmt.Sprint(b.id(context.Background(), nameOrID), " ", trial)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logs[key] = append(b.logs[key], p)
}

// TailLogs implements server.Backend. It sends whole parts, whatever the number of lines, and
// follows nothing.
func (b *Backend) TailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	return func(yield func(coordinator.LogPart, error) bool) {
		_, err := b.Trial(ctx, nameOrID, number)
		if err != nil {
			yield(coordinator.LogPart{}, err)
			return
		}
		key := fmt.Sprint(b.id(ctx, nameOrID), " ", number)
		b.mu.Lock()
		parts := slices.Clone(b.logs[key])
		b.mu.Unlock()
		if len(parts) == 0 {
			yield(coordinator.LogPart{}, fmt.Errorf("%w: no worker has taken trial %d yet", study.ErrNotFound, number))
			return
		}
		last := parts[len(parts)-1].Attempt
		for _, p := range parts {
			wanted := p.Attempt == o.Attempt || o.Attempt == 0 && p.Attempt == last
			if wanted && slices.Contains(o.Streams, p.Stream) && !yield(p, nil) {
				return
			}
		}
	}
}
