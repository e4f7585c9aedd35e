package server_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is when every study of the tests was created.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// memory is a Backend that keeps studies in memory and evaluates nothing: tests
// put the trials in.
type memory struct {
	mu      sync.Mutex
	studies map[string]*server.Study // by name
	trials  map[string][]record.Trial
	changed chan struct{} // closed and replaced at each change
	workers []server.Worker
	made    int
	broken  error // what Study returns, if set
}

var _ server.Backend = (*memory)(nil)

func newMemory() *memory {
	return &memory{studies: map[string]*server.Study{}, trials: map[string][]record.Trial{}, changed: make(chan struct{})}
}

// change lets f change the state and wakes the watches.
func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

// put adds or replaces a trial.
func (m *memory) put(study string, t record.Trial) {
	m.change(func() {
		m.trials[study] = slices.DeleteFunc(m.trials[study], func(o record.Trial) bool { return o.Number == t.Number })
		m.trials[study] = append(m.trials[study], t)
		slices.SortFunc(m.trials[study], func(a, b record.Trial) int { return a.Number - b.Number })
	})
}

// find returns the study of that name or id; the caller holds the lock.
func (m *memory) find(nameOrID string) (*server.Study, error) {
	for name, s := range m.studies {
		if name == nameOrID || s.Spec.ID == nameOrID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("study %q: %w", nameOrID, server.ErrNotFound)
}

func (m *memory) Studies(_ context.Context, after string, limit int) ([]server.Study, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []server.Study
	for _, name := range slices.Sorted(maps.Keys(m.studies)) {
		if name > after && len(list) < limit {
			list = append(list, *m.studies[name])
		}
	}
	return list, nil
}

func (m *memory) Study(_ context.Context, name string) (server.Study, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "panics" {
		panic("a wild pointer")
	}
	if m.broken != nil {
		return server.Study{}, m.broken
	}
	s, err := m.find(name)
	if err != nil {
		return server.Study{}, err
	}
	return *s, nil
}

func (m *memory) WatchStudy(ctx context.Context, name string) iter.Seq2[server.Study, error] {
	return func(yield func(server.Study, error) bool) {
		for {
			m.mu.Lock()
			s, err := m.find(name)
			var now server.Study
			if err == nil {
				now = *s
			}
			changed := m.changed
			m.mu.Unlock()
			if !yield(now, err) || err != nil || now.Status.State.Terminal() {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(server.Study{}, ctx.Err())
				return
			}
		}
	}
}

func (m *memory) Create(_ context.Context, file []byte) (server.Study, error) {
	parsed, err := study.Parse(file)
	if err != nil {
		return server.Study{}, err
	}
	name := parsed.Metadata.Name
	m.mu.Lock()
	_, exists := m.studies[name]
	m.mu.Unlock()
	if exists {
		return server.Study{}, fmt.Errorf("study %q: %w", name, server.ErrExists)
	}
	var created server.Study
	m.change(func() {
		m.made++
		created = server.Study{
			Spec:   record.Study{ID: "ID" + strconv.Itoa(m.made), Study: *parsed, Created: epoch},
			Status: record.Status{State: study.Running, Started: epoch},
		}
		m.studies[name] = &created
	})
	return created, nil
}

func (m *memory) Update(ctx context.Context, name string, file []byte) (server.Study, error) {
	parsed, err := study.Parse(file)
	if err != nil {
		return server.Study{}, err
	}
	if _, err := m.Study(ctx, name); err != nil {
		return server.Study{}, err
	}
	if parsed.Metadata.Name != name {
		return server.Study{}, fmt.Errorf("%w: metadata.name is %q, the study's is %q", server.ErrPrecondition, parsed.Metadata.Name, name)
	}
	m.change(func() { m.studies[name].Spec.Study = *parsed })
	return m.Study(ctx, name)
}

func (m *memory) Stop(ctx context.Context, name, reason string) (server.Study, error) {
	if _, err := m.Study(ctx, name); err != nil {
		return server.Study{}, err
	}
	m.change(func() {
		if s := m.studies[name]; !s.Status.State.Terminal() {
			s.Status.State, s.Status.Reason, s.Status.Ended = study.Stopped, reason, epoch.Add(time.Minute)
		}
	})
	return m.Study(ctx, name)
}

func (m *memory) Delete(ctx context.Context, name string, force bool) error {
	found, err := m.Study(ctx, name)
	if err != nil {
		return err
	}
	if !force && !found.Status.State.Terminal() {
		return fmt.Errorf("study %q is running: %w: stop it first, or force", name, server.ErrPrecondition)
	}
	m.change(func() { delete(m.studies, name); delete(m.trials, name) })
	return nil
}

func (m *memory) Trials(_ context.Context, name string, after, limit int) ([]record.Trial, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(name); err != nil {
		return nil, err
	}
	var list []record.Trial
	for _, t := range m.trials[name] {
		if t.Number > after && len(list) < limit {
			list = append(list, t)
		}
	}
	return list, nil
}

func (m *memory) Trial(ctx context.Context, name string, number int) (record.Trial, error) {
	list, err := m.Trials(ctx, name, number-1, 1)
	if err != nil {
		return record.Trial{}, err
	}
	if len(list) == 0 || list[0].Number != number {
		return record.Trial{}, fmt.Errorf("trial %d of study %q: %w", number, name, server.ErrNotFound)
	}
	return list[0], nil
}

func (m *memory) WatchTrials(ctx context.Context, name string, existing bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) { m.watchTrials(ctx, name, existing, nil, yield) }
}

// watchTrials sends on waiting, unless it is nil, when it has shown all there is.
func (m *memory) watchTrials(ctx context.Context, name string, existing bool, waiting chan<- struct{}, yield func(record.Trial, error) bool) {
	seen := map[int]study.TrialState{}
	for first := true; ; first = false {
		m.mu.Lock()
		s, err := m.find(name)
		ended := err == nil && s.Status.State.Terminal()
		list, changed := slices.Clone(m.trials[name]), m.changed
		m.mu.Unlock()
		if err != nil {
			yield(record.Trial{}, err)
			return
		}
		for _, t := range list {
			known := seen[t.Number] == t.State
			seen[t.Number] = t.State
			if !known && (existing || !first) && !yield(t, nil) {
				return
			}
		}
		if ended {
			return
		}
		if waiting != nil {
			waiting <- struct{}{}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (m *memory) Workers(context.Context) ([]server.Worker, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.workers), nil
}
