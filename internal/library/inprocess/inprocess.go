// Package inprocess leads a study of package fantasia in its own process: an engine and its optimisers,
// with a journal in a file, or in memory, in place of etcd.
package inprocess

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Study is a study that an engine in this process leads. A journal keeps it.
type Study struct {
	spec        *study.Spec // of the definition with which it was opened
	constraints []space.Constraint
	optimizer   optimizer.Optimizer
	fallback    optimizer.Optimizer
	log         *slog.Logger
	progress    *library.Announcer

	life   context.Context // until close
	cancel context.CancelFunc
	// background counts the calls of optimisers and the timer.
	background sync.WaitGroup

	mu      sync.Mutex
	engine  *engine.Engine
	journal *journal.Journal
	stopped error // why the study can do no more: ErrClosed, or a failure of the journal
	waiting map[string]*ask
	holding map[string]*library.Evaluation // by client
	timer   *time.Timer
	wake    time.Time
}

var _ library.Binding = (*Study)(nil)

// Options are what only a study of this process has.
type Options struct {
	// State is the path of the file that keeps the study; empty to keep it in memory only.
	State       string
	Constraints []space.Constraint
	Optimizer   optimizer.Optimizer
}

// Open begins a study of this process, or continues the one that the state has. The error wraps
// study.ErrInvalid, library.ErrDifferent, journal.ErrInUse or journal.ErrDamaged, or is that of the file
// system.
func Open(set library.Settings, o Options) (*Study, error) {
	u := &Study{
		spec: &set.Definition.Spec, constraints: o.Constraints, optimizer: o.Optimizer, fallback: sobol.New(),
		log: set.Log, progress: library.NewAnnouncer(set.Progress), journal: journal.InMemory(), waiting: map[string]*ask{},
		holding: map[string]*library.Evaluation{},
	}
	u.life, u.cancel = context.WithCancel(context.Background())
	var err error
	var stored *journal.Stored
	if o.State != "" {
		u.journal, stored, err = journal.Open(o.State, u.log)
		if errors.Is(err, journal.ErrDamaged) {
			err = fmt.Errorf("%w; save what can be read: fantasia state repair %s --into NEW", err, o.State)
		}
		if err != nil {
			return nil, err
		}
	}
	kept := u.do(func() { err = u.begin(set.Definition, set.Space, stored) })
	if err = cmp.Or(err, kept); err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

// begin starts the study, or continues it as stored.
func (s *Study) begin(definition *study.Study, compiled *space.Space, stored *journal.Stored) error {
	_, blind := s.optimizer.(optimizer.Blind)
	settings := engine.Settings{Blind: blind, Fallback: true, Space: func(d *study.Study) (*space.Space, error) {
		if stored != nil && study.NewSpace(d, definition) { // the space before an edit
			return space.New(d.Spec.Parameters, s.constraints, d.Spec.Initial)
		}
		return compiled, nil
	}}
	now := time.Now()
	spec := record.Study{ID: record.NewID(rand.Reader, now), Definition: *definition, Created: now}
	var out engine.Output
	var err error
	if stored == nil {
		if s.engine, out, err = engine.New(spec, drive.IDs{}, settings, now); err != nil {
			return err
		}
		out.Study = &spec
		s.apply(&out)
		return s.stopped
	}
	definition.Spec.Relearn(&stored.Study.Definition.Spec)
	if differences := study.Compatible(&stored.Study.Definition, definition); len(differences) > 0 {
		return fmt.Errorf("%w: %s", library.ErrDifferent, strings.Join(differences, "; "))
	}
	if s.engine, out, err = engine.Load(stored.Study, stored.Status, stored.Model, stored.Trials, drive.IDs{}, settings, now); err != nil {
		return fmt.Errorf("%w: %w", journal.ErrDamaged, err)
	}
	s.apply(&out)
	if err := s.recall(stored, now); err != nil {
		return err
	}
	for i := range stored.Trials { // nobody evaluates them any more
		if t := &stored.Trials[i]; !t.State.Terminal() && len(t.Attempts) > 0 {
			s.step(engine.Lost{
				At: now, Attempt: messaging.AttemptID{Study: stored.Study.ID, Trial: t.Number, Attempt: len(t.Attempts), Nonce: t.Last().Nonce},
				Reason: "its program was killed, or ended without closing the study",
			})
		}
	}
	s.step(engine.Tick{At: now})
	definition.Metadata.Labels, definition.Spec.Note = library.Noted(definition, &stored.Study.Definition)
	if spec = stored.Study; !library.Equal(&spec.Definition, definition) {
		spec.Definition = *definition
		s.step(engine.Update{At: now, Study: spec})
	}
	return s.stopped
}

// recall tells the rule for early stopping all curves, which it compares new reports with.
func (s *Study) recall(stored *journal.Stored, now time.Time) error {
	if stored.Study.Definition.Spec.EarlyStopping == nil {
		return nil
	}
	for i := range stored.Trials {
		number := stored.Trials[i].Number
		switch c, err := s.journal.Curve(number); {
		case err != nil:
			return fmt.Errorf("%w: %w", journal.ErrDamaged, err)
		case c != nil:
			s.step(engine.Recalled{At: now, Trial: number, Curve: c})
		}
	}
	return s.stopped
}

// step applies an event and carries out what follows. It returns the engine's answer, if it has
// one. s.mu MUST be held, and s.stopped be nil.
func (s *Study) step(event engine.Event) *engine.Answer {
	out := s.engine.Step(event)
	return s.apply(&out)
}

// apply stores an Output, and then carries out its effects. Whoever has it do so MUST use do, or
// durable, before it tells the user of them.
func (s *Study) apply(out *engine.Output) *engine.Answer {
	if s.stopped != nil {
		return &engine.Answer{Err: s.stopped}
	}
	if err := s.journal.Commit(out, s.latest); err != nil {
		s.stop(fmt.Errorf("keep the study's state: %w", err))
		return &engine.Answer{Err: s.stopped}
	}
	for _, w := range out.Warnings {
		s.log.Warn(w, "study", s.engine.Spec().Definition.Metadata.Name)
	}
	for i := range out.Trials {
		s.handOut(&out.Trials[i])
	}
	for i := range out.Ended {
		s.retire(&out.Ended[i])
	}
	s.answer(out.Ask, s.optimizer)
	s.answer(out.Fallback, s.fallback)
	s.judge(out.Judge)
	s.schedule(out.Wake)
	if s.engine.Status().State.Terminal() {
		s.release(library.ErrEnded)
	}
	return out.Answer
}

// do calls f with s.mu held, and returns nil once all that the study's records were then is on the disk. So
// results that come during an fsync share the next one.
func (s *Study) do(f func()) error { return s.durable(s.locked(f)) }

// errPanicked is why a study can do no more after a panic in the middle of a change, such as one of a
// constraint's function or a log's handler.
var errPanicked = errors.New("an earlier call of the study panicked")

// locked calls f with s.mu held, and returns how much of the journal is due then. If f panics, the study can do no
// more, and whoever recovers gets errors from it and does not wait for ever.
func (s *Study) locked(f func()) (due int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	returned := false
	defer func() {
		if !returned && s.stopped == nil {
			s.stop(errPanicked)
		}
	}()
	f()
	returned = true
	return s.journal.Due()
}

// durable returns nil once all is on the disk that was in the journal when it returned due. If that fails, it
// stops the study. s.mu MUST NOT be held.
func (s *Study) durable(due int64) error {
	failed := s.journal.Sync(due)
	if failed == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil {
		s.stop(fmt.Errorf("keep the study's state: %w", failed))
	}
	return s.stopped
}

// latest returns all records, to write the journal anew.
func (s *Study) latest() *journal.Stored {
	all := &journal.Stored{Study: s.engine.Spec(), Status: s.engine.Status(), Model: s.engine.Model()}
	for n := 1; ; n++ {
		t, ok := s.engine.Trial(n)
		if !ok {
			return all
		}
		all.Trials = append(all.Trials, t)
	}
}

// answer has an optimiser answer a request, in the background.
func (s *Study) answer(request *engine.Ask, o optimizer.Optimizer) {
	if request == nil {
		return
	}
	s.background.Go(func() {
		answer := drive.Suggest(s.life, o, s.spec.Algorithm.Seed, request)
		s.answered(func(at time.Time) engine.Event { answer.At = at; return answer })
	})
}

// judge has a model answer whether a trial goes on, in the background.
func (s *Study) judge(question *engine.Judge) {
	if question == nil {
		return
	}
	s.background.Go(func() {
		answer := drive.Judge(s.life, question)
		s.answered(func(at time.Time) engine.Event { answer.At = at; return answer })
	})
}

// answered gives the engine an answer of the background, with the time at which it comes.
func (s *Study) answered(event func(at time.Time) engine.Event) {
	_ = s.do(func() { // an error stops the study
		if s.stopped == nil {
			s.step(event(time.Now()))
		}
	})
}

// schedule has the engine look again at a time; zero for never.
func (s *Study) schedule(at time.Time) {
	if at.Equal(s.wake) && s.timer != nil {
		return
	}
	s.unschedule()
	if s.wake = at; at.IsZero() {
		return
	}
	s.background.Add(1)
	s.timer = time.AfterFunc(time.Until(at), func() {
		defer s.background.Done()
		_ = s.do(func() { // an error stops the study
			if s.stopped == nil && s.wake.Equal(at) {
				s.timer = nil
				s.step(engine.Tick{At: time.Now()})
			}
		})
	})
}

// unschedule stops the timer.
func (s *Study) unschedule() {
	if s.timer != nil && s.timer.Stop() {
		s.background.Done()
	}
	s.timer, s.wake = nil, time.Time{}
}

// stop makes the study unusable, and ends what waits for it.
func (s *Study) stop(why error) {
	s.stopped = why
	s.unschedule()
	s.release(why)
	for _, t := range s.holding {
		t.End(why)
	}
}

// handBack hands back the trials that are being evaluated, so that they do not count as lost when the study is
// opened again. The calls that wait for a trial are withdrawn first: they would get these.
func (s *Study) handBack() {
	now := time.Now()
	if s.stopped != nil || s.engine == nil {
		return
	}
	for client := range s.waiting {
		s.step(engine.Seek{At: now, Client: client})
	}
	if s.stopped == nil {
		s.step(engine.HandBackAll{At: now})
	}
}

// Close implements library.Binding.
func (s *Study) Close() error {
	closed := false
	s.locked(func() {
		closed = errors.Is(s.stopped, library.ErrClosed)
		s.handBack()
		s.stop(library.ErrClosed)
	})
	s.cancel()
	s.background.Wait()
	if closed {
		return nil
	}
	return s.journal.Close()
}

// Outcome implements library.Binding.
func (s *Study) Outcome() (err error, ended bool) {
	_ = s.do(func() { // an error stops the study
		switch status := s.engine.Status(); {
		case s.stopped != nil:
			err, ended = s.stopped, true
		case status.State == study.Failed:
			err, ended = fmt.Errorf("%w: %s", library.ErrFailed, status.Reason), true
		default:
			ended = status.State.Terminal()
		}
	})
	return err, ended
}

// GoOn implements library.Binding.
func (s *Study) GoOn(context.Context) error {
	return s.do(func() {
		status := s.engine.Status()
		if s.stopped != nil || status.State != study.Failed {
			return
		}
		if answer := s.step(engine.Resume{At: time.Now()}); answer.Err == nil {
			s.log.Warn(library.WentOn, "study", s.engine.Spec().Definition.Metadata.Name, "reason", status.Reason)
		}
	})
}

// client returns the name of the lowest slot that nobody uses. The records of trials hold it.
func (s *Study) client() string {
	for n := 1; ; n++ {
		name := "slot-" + strconv.Itoa(n)
		if s.waiting[name] == nil && s.holding[name] == nil {
			return name
		}
	}
}

// Durable returns how many bytes of the state's file are on the disk.
func (s *Study) Durable() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Durable()
}
