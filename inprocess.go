package fantasia

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
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
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// inProcess leads a study in this process.
type inProcess struct {
	space     *Space
	aims      *aims
	reported  string // the metric that Trial.Report tells
	seed      uint64
	optimizer optimizer.Optimizer
	fallback  optimizer.Optimizer
	log       *slog.Logger
	progress  announcer

	life   context.Context // until close
	cancel context.CancelFunc
	// background counts the calls of optimisers and the timer.
	background sync.WaitGroup

	mu      sync.Mutex
	engine  *engine.Engine
	journal *journal.Journal
	stopped error // why the study can do no more: ErrClosed, or a failure of the journal
	waiting map[string]*ask
	holding map[string]*Trial // by client, of open trials
	timer   *time.Timer
	wake    time.Time
}

var _ leader = (*inProcess)(nil)

// openInProcess opens a study of this process.
func openInProcess(s *Space, o *Options, a *aims, definition *study.Study, compiled *space.Space) (*inProcess, error) {
	algorithm, err := o.optimizer()
	if err != nil {
		return nil, err // check has found none
	}
	u := &inProcess{
		space: s, aims: a, reported: a.reported(o), seed: o.Seed, optimizer: algorithm, fallback: sobol.New(), log: o.logger(), progress: announcer{call: o.Progress},
		journal: journal.InMemory(), waiting: map[string]*ask{}, holding: map[string]*Trial{},
	}
	u.life, u.cancel = context.WithCancel(context.Background())
	var stored *journal.Stored
	if o.State != "" {
		if u.journal, stored, err = journal.Open(o.State, u.log); err != nil {
			return nil, err
		}
	}
	kept := u.do(func() { err = u.begin(definition, compiled, stored) })
	if err == nil {
		err = kept
	}
	if err != nil {
		return nil, errors.Join(err, u.close())
	}
	return u, nil
}

// begin starts the study, or continues it as stored.
func (s *inProcess) begin(definition *study.Study, compiled *space.Space, stored *journal.Stored) error {
	_, blind := s.optimizer.(optimizer.Blind)
	settings := engine.Settings{Blind: blind, Fallback: true, Space: func(d *study.Study) (*space.Space, error) {
		if stored != nil && study.NewSpace(d, definition) { // the space before an edit
			return space.New(d.Spec.Parameters, s.space.constraints, d.Spec.Initial)
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
		s.take(&out)
		return s.stopped
	}
	if differences := study.Compatible(&stored.Study.Definition, definition); len(differences) > 0 {
		return fmt.Errorf("%w: %s", ErrDifferent, strings.Join(differences, "; "))
	}
	if s.engine, out, err = engine.Load(stored.Study, stored.Status, stored.Model, stored.Trials, drive.IDs{}, settings, now); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	s.take(&out)
	if err := s.recall(stored, now); err != nil {
		return err
	}
	s.step(engine.HandBackAll{At: now}) // nobody evaluates them any more
	s.step(engine.Tick{At: now})
	definition.Metadata.Labels, definition.Spec.Note = noted(definition, &stored.Study.Definition)
	if spec = stored.Study; !equal(&spec.Definition, definition) {
		spec.Definition = *definition
		s.step(engine.Update{At: now, Study: spec})
	}
	return s.stopped
}

// recall tells the rule for early stopping all curves, which it compares new reports with.
func (s *inProcess) recall(stored *journal.Stored, now time.Time) error {
	if stored.Study.Definition.Spec.EarlyStopping == nil {
		return nil
	}
	for i := range stored.Trials {
		number := stored.Trials[i].Number
		switch c, err := s.journal.Curve(number); {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		case c != nil:
			s.step(engine.Recalled{At: now, Trial: number, Curve: c})
		}
	}
	return s.stopped
}

// step applies an event and carries out what follows. It returns the engine's answer, if it has
// one. s.mu MUST be held, and s.stopped be nil.
func (s *inProcess) step(event engine.Event) *engine.Answer {
	out := s.engine.Step(event)
	return s.take(&out)
}

// take stores an Output, and then carries out its effects. Whoever has it do so MUST use do, or
// durable, before it tells the user of them.
func (s *inProcess) take(out *engine.Output) *engine.Answer {
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
	s.schedule(out.Wake)
	if s.engine.Status().State.Terminal() {
		s.release(ErrEnded)
	}
	return out.Answer
}

// do calls f with s.mu held, and returns nil once all that the study's records were then is on the disk. So
// results that come during an fsync share the next one.
func (s *inProcess) do(f func()) error {
	s.mu.Lock()
	f()
	due := s.journal.Due()
	s.mu.Unlock()
	return s.durable(due)
}

// durable returns nil once all is on the disk that was in the journal when it returned due. If that fails, it
// stops the study. s.mu MUST NOT be held.
func (s *inProcess) durable(due int64) error {
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
func (s *inProcess) latest() *journal.Stored {
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
func (s *inProcess) answer(request *engine.Ask, o optimizer.Optimizer) {
	if request == nil {
		return
	}
	s.background.Go(func() {
		answer := drive.Suggest(s.life, o, s.seed, request)
		_ = s.do(func() { // an error stops the study
			if answer.At = time.Now(); s.stopped == nil {
				s.step(answer)
			}
		})
	})
}

// schedule has the engine look again at a time; zero for never.
func (s *inProcess) schedule(at time.Time) {
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
func (s *inProcess) unschedule() {
	if s.timer != nil && s.timer.Stop() {
		s.background.Done()
	}
	s.timer, s.wake = nil, time.Time{}
}

// stop makes the study unusable, and ends what waits for it.
func (s *inProcess) stop(why error) {
	s.stopped = why
	s.unschedule()
	s.release(why)
	for _, t := range s.holding {
		t.end(why)
	}
}

// close implements leader.
func (s *inProcess) close() error {
	s.mu.Lock()
	closed := errors.Is(s.stopped, ErrClosed)
	s.stop(ErrClosed)
	s.mu.Unlock()
	s.cancel()
	s.background.Wait()
	if closed {
		return nil
	}
	return s.journal.Close()
}

// outcome implements leader.
func (s *inProcess) outcome() (err error, ended bool) {
	_ = s.do(func() { // an error stops the study
		switch status := s.engine.Status(); {
		case s.stopped != nil:
			err, ended = s.stopped, true
		case status.State == study.Failed:
			err, ended = fmt.Errorf("%w: %s", ErrFailed, status.Reason), true
		default:
			ended = status.State.Terminal()
		}
	})
	return err, ended
}

// client returns the name of the lowest slot that nobody uses. The records of trials hold it.
func (s *inProcess) client() string {
	for n := 1; ; n++ {
		name := "slot-" + strconv.Itoa(n)
		if s.waiting[name] == nil && s.holding[name] == nil {
			return name
		}
	}
}

// equal reports whether two studies are the same in JSON.
func equal(a, b *study.Study) bool {
	first, err := json.Marshal(a)
	second, again := json.Marshal(b)
	return err == nil && again == nil && bytes.Equal(first, second)
}
