// Package servertest is a Backend in memory, for tests of the API and of its
// clients: it evaluates nothing, and tests put the trials in.
package servertest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// Epoch is when every study was created and started.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Memory is a server.Backend that keeps studies in memory. Safe for concurrent use.
type Memory struct {
	// Clients serves those who evaluate trials themselves; nil panics.
	server.Clients
	// others are the methods that no test needs; they panic.
	others

	// Waiting, unless nil, gets a value whenever a watch of trials has shown all
	// there is; Ended whenever one has ended. Set both before any watch.
	Waiting, Ended chan struct{}

	mu      sync.Mutex
	studies map[string]*kept // by name
	changed chan struct{}    // closed and replaced at each change
	workers []coordinator.Worker
	// archived are the archived studies, by id.
	archived map[string]*kept
	logs     map[string][]coordinator.LogPart // by study and trial
	made     int
}

// others lets Memory lack a method of a Backend until a test needs it.
type others struct{ server.Backend }

var _ server.Backend = (*Memory)(nil)

// kept is a study with its trials and curves.
type kept struct {
	server.Study
	trials []record.Trial
	curves []curve.Reported
}

func (s *kept) name() string { return s.Spec.Definition.Metadata.Name }

// entry is what the archive says of a study.
func (s *kept) entry() archive.Entry {
	return archive.Entry{
		Study: backup.Study{
			ID: s.Spec.ID, Name: s.name(), State: s.Status.State, Trials: s.Status.Trials,
			Started: s.Spec.Created, Ended: s.Status.Ended,
		},
		Archived: Epoch.Add(time.Hour), Bytes: 1000,
	}
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{studies: map[string]*kept{}, archived: map[string]*kept{}, logs: map[string][]coordinator.LogPart{},
		changed: make(chan struct{})}
}

// change lets f change the state and wakes the watches.
func (m *Memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Change lets f change a study, which must exist, and wakes the watches.
func (m *Memory) Change(study string, f func(*server.Study)) {
	m.change(func() { f(&m.studies[study].Study) })
}

// SetWorkers replaces the workers.
func (m *Memory) SetWorkers(workers ...coordinator.Worker) { m.change(func() { m.workers = workers }) }

// PutLog adds a part to the log of a study's trial.
func (m *Memory) PutLog(study string, trial int, p coordinator.LogPart) {
	m.change(func() { m.logs[logKey(study, trial)] = append(m.logs[logKey(study, trial)], p) })
}

func logKey(study string, trial int) string { return study + "/" + strconv.Itoa(trial) }

// Put adds or replaces a trial of a study.
func (m *Memory) Put(study string, t record.Trial) {
	m.change(func() {
		s := m.studies[study]
		i, found := slices.BinarySearchFunc(s.trials, t.Number, func(o record.Trial, number int) int { return o.Number - number })
		if found {
			s.trials[i] = t
		} else {
			s.trials = slices.Insert(s.trials, i, t)
		}
	})
}

// PutMeasurements adds or replaces the measurements of a trial.
func (m *Memory) PutMeasurements(study string, measured curve.Reported) {
	m.change(func() {
		s := m.studies[study]
		s.curves = append(slices.DeleteFunc(s.curves, func(o curve.Reported) bool { return o.Trial == measured.Trial }), measured)
	})
}

// find returns the study of that name or id; the caller holds the lock.
func (m *Memory) find(nameOrID string) (*kept, error) {
	for name, s := range m.studies {
		if name == nameOrID || s.Spec.ID == nameOrID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("study %q: %w", nameOrID, study.ErrNotFound)
}

// Studies implements server.Backend.
func (m *Memory) Studies(_ context.Context, after string, limit int) ([]server.Study, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []server.Study
	for _, name := range slices.Sorted(maps.Keys(m.studies)) {
		if name > after && len(list) < limit {
			list = append(list, m.studies[name].Study)
		}
	}
	return list, nil
}

// Study implements server.Backend.
func (m *Memory) Study(_ context.Context, name string) (server.Study, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return server.Study{}, err
	}
	return s.Study, nil
}

// Name implements server.Backend.
func (m *Memory) Name(ctx context.Context, nameOrID string) (string, error) {
	s, err := m.Study(ctx, nameOrID)
	return s.Spec.Definition.Metadata.Name, err
}

// WatchStudy implements server.Backend.
func (m *Memory) WatchStudy(ctx context.Context, name string) iter.Seq2[server.Study, error] {
	return func(yield func(server.Study, error) bool) {
		for {
			m.mu.Lock()
			s, err := m.find(name)
			var now server.Study
			if err == nil {
				now = s.Study
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

// Create implements server.Backend.
func (m *Memory) Create(_ context.Context, text []byte) (server.Study, error) {
	parsed, err := file.Parse(text)
	if err != nil {
		return server.Study{}, err
	}
	name := parsed.Metadata.Name
	m.mu.Lock()
	_, exists := m.studies[name]
	m.mu.Unlock()
	if exists {
		return server.Study{}, fmt.Errorf("study %q: %w", name, study.ErrExists)
	}
	var created server.Study
	m.change(func() {
		m.made++
		created = server.Study{
			Spec:   record.Study{ID: "ID" + strconv.Itoa(m.made), Definition: *parsed, Created: Epoch},
			Status: record.Status{State: study.Running, Started: Epoch},
		}
		m.studies[name] = &kept{Study: created} // the caller's copy is read without the lock
	})
	return created, nil
}

// Update implements server.Backend.
func (m *Memory) Update(ctx context.Context, name string, text []byte, version int) (server.Study, error) {
	parsed, err := file.Parse(text)
	if err != nil {
		return server.Study{}, err
	}
	found, err := m.Study(ctx, name)
	if err != nil {
		return server.Study{}, err
	}
	if name = found.Spec.Definition.Metadata.Name; parsed.Metadata.Name != name {
		return server.Study{}, fmt.Errorf("%w: metadata.name is %q, the study's is %q", study.ErrPrecondition, parsed.Metadata.Name, name)
	}
	if now := found.Spec.SpaceVersion(); version != 0 && version != now {
		return server.Study{}, fmt.Errorf("%w: the space has version %d, not %d", study.ErrPrecondition, now, version)
	}
	if differences := study.Compatible(&found.Spec.Definition, parsed); len(differences) > 0 {
		return server.Study{}, fmt.Errorf("%w: %s", study.ErrPrecondition, strings.Join(differences, "\n  "))
	}
	m.change(func() {
		spec := &m.studies[name].Spec
		if study.NewSpace(&spec.Definition, parsed) {
			spec.Space = spec.SpaceVersion() + 1
		}
		noted := spec.Definition.Spec.Attributes
		if spec.Definition = *parsed; parsed.Spec.Attributes == nil {
			spec.Definition.Spec.Attributes = noted
		}
	})
	return m.Study(ctx, name)
}

// Annotate implements server.Backend.
func (m *Memory) Annotate(ctx context.Context, name string, attributes map[string]any) (server.Study, error) {
	found, err := m.Study(ctx, name)
	if err != nil {
		return server.Study{}, err
	}
	m.change(func() {
		spec := &m.studies[found.Spec.Definition.Metadata.Name].Spec.Definition.Spec
		spec.Attributes = study.WithAttributes(spec.Attributes, attributes)
	})
	return m.Study(ctx, name)
}

// Stop implements server.Backend.
func (m *Memory) Stop(ctx context.Context, name, reason string) (server.Study, error) {
	found, err := m.Study(ctx, name)
	if err != nil {
		return server.Study{}, err
	}
	name = found.Spec.Definition.Metadata.Name
	m.change(func() {
		if s := m.studies[name]; !s.Status.State.Terminal() {
			s.Status.State, s.Status.Reason, s.Status.Ended = study.Stopped, reason, Epoch.Add(time.Minute)
		}
	})
	return m.Study(ctx, name)
}

// Delete implements server.Backend.
func (m *Memory) Delete(ctx context.Context, name string, force bool) error {
	found, err := m.Study(ctx, name)
	if err != nil {
		return err
	}
	if !force && !found.Status.State.Terminal() {
		return fmt.Errorf("study %q is running: %w: stop it first, or force", name, study.ErrPrecondition)
	}
	m.change(func() { delete(m.studies, found.Spec.Definition.Metadata.Name) })
	return nil
}

// Archive implements server.Backend.
func (m *Memory) Archive(ctx context.Context, name string) (archive.Entry, error) {
	found, err := m.Study(ctx, name)
	if err != nil {
		return archive.Entry{}, err
	}
	if !found.Status.State.Terminal() {
		return archive.Entry{}, fmt.Errorf("study %q is running: %w", name, study.ErrPrecondition)
	}
	a := &kept{Study: found}
	m.change(func() {
		s := m.studies[a.name()]
		a.trials, a.curves = s.trials, s.curves
		m.archived[found.Spec.ID] = a
		delete(m.studies, a.name())
	})
	return a.entry(), nil
}

// Unarchive implements server.Backend.
func (m *Memory) Unarchive(ctx context.Context, nameOrID string) (server.Study, error) {
	var err error
	var name string
	m.change(func() {
		for id, a := range m.archived {
			name = a.name()
			if nameOrID != id && nameOrID != name {
				continue
			}
			if m.studies[name] != nil {
				err = fmt.Errorf("study %q %w", name, study.ErrExists)
				return
			}
			m.studies[name] = a
			delete(m.archived, id)
			return
		}
		err = fmt.Errorf("%w: study %q is not in the archive", study.ErrNotFound, nameOrID)
	})
	if err != nil {
		return server.Study{}, err
	}
	return m.Study(ctx, name)
}

// Archived implements server.Backend.
func (m *Memory) Archived(context.Context) (all []archive.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.archived {
		all = append(all, a.entry())
	}
	return all, nil
}

// Trials implements server.Backend.
func (m *Memory) Trials(_ context.Context, name string, after, limit int) ([]record.Trial, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return nil, err
	}
	var list []record.Trial
	for _, t := range s.trials {
		if t.Number > after && len(list) < limit {
			list = append(list, t)
		}
	}
	return list, nil
}

// Trial implements server.Backend.
func (m *Memory) Trial(ctx context.Context, name string, number int) (record.Trial, error) {
	list, err := m.Trials(ctx, name, number-1, 1)
	if err != nil {
		return record.Trial{}, err
	}
	if len(list) == 0 || list[0].Number != number {
		return record.Trial{}, fmt.Errorf("trial %d of study %q: %w", number, name, study.ErrNotFound)
	}
	return list[0], nil
}

// WatchTrials implements server.Backend.
func (m *Memory) WatchTrials(ctx context.Context, name string, existing bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) {
		m.watchTrials(ctx, name, existing, yield)
		if m.Ended != nil {
			m.Ended <- struct{}{}
		}
	}
}

func (m *Memory) watchTrials(ctx context.Context, name string, existing bool, yield func(record.Trial, error) bool) {
	seen := map[int]study.TrialState{}
	for first := true; ; first = false {
		m.mu.Lock()
		s, err := m.find(name)
		ended := err == nil && s.Status.State.Terminal()
		var list []record.Trial
		if err == nil {
			list = slices.Clone(s.trials)
		}
		changed := m.changed
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
		if m.Waiting != nil {
			m.Waiting <- struct{}{}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Measurements implements server.Backend.
func (m *Memory) Measurements(ctx context.Context, name string, number int) (curve.Reported, error) {
	if _, err := m.Trial(ctx, name, number); err != nil {
		return curve.Reported{}, err
	}
	for _, measured := range m.measured(name) {
		if measured.Trial == number {
			return measured, nil
		}
	}
	return curve.Reported{Trial: number}, nil
}

// measured are all measurements of a study.
func (m *Memory) measured(name string) []curve.Reported {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return nil
	}
	return slices.Clone(s.curves)
}

// WatchMeasurements implements server.Backend: everything comes again with each change.
func (m *Memory) WatchMeasurements(ctx context.Context, name string, existing bool,
	ended <-chan struct{}) iter.Seq2[curve.Reported, error] {
	return func(yield func(curve.Reported, error) bool) {
		for last, first := false, true; ; first = false {
			m.mu.Lock()
			changed := m.changed
			m.mu.Unlock()
			for _, measured := range m.measured(name) {
				if (existing || !first) && !yield(measured, nil) {
					return
				}
			}
			if last {
				return
			}
			select {
			case <-changed:
			case <-ended:
				last = true
			case <-ctx.Done():
				return
			}
		}
	}
}

// TailLogs implements server.Backend. It sends whole parts, whatever the number of
// lines, and follows nothing.
func (m *Memory) TailLogs(ctx context.Context, name string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	return func(yield func(coordinator.LogPart, error) bool) {
		found, err := m.Study(ctx, name)
		if err == nil {
			_, err = m.Trial(ctx, name, number)
		}
		m.mu.Lock()
		parts := slices.Clone(m.logs[logKey(found.Spec.Definition.Metadata.Name, number)])
		m.mu.Unlock()
		if err == nil && len(parts) == 0 {
			err = fmt.Errorf("%w: no worker has taken trial %d yet", study.ErrNotFound, number)
		}
		if err != nil {
			yield(coordinator.LogPart{}, err)
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

// Used implements server.Backend. It counts the studies.
func (m *Memory) Used(_ context.Context, shares []quota.Share) ([]quota.Use, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uses := make([]quota.Use, len(shares))
	for i := range shares {
		uses[i] = quota.Use{}
		for name := range m.studies {
			if shares[i].Covers(name) {
				uses[i][quota.Studies]++
			}
		}
	}
	return uses, nil
}

// Workers implements server.Backend.
func (m *Memory) Workers(context.Context) ([]coordinator.Worker, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.workers), nil
}
