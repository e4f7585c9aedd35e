package onserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// lease is what this process knows of a trial that it holds. The study's lock guards it.
type lease struct {
	freed bool  // the slot can be used for another trial
	told  error // what the server says of the evaluation: nil to go on

	reports int // so far
	waiting []reported
	sent    chan struct{} // closed when no report waits any more; nil if none does
}

// Ask implements library.Binding.
func (s *Study) Ask(ctx context.Context) (*library.Evaluation, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.open, func() { cancel(library.ErrClosed) })() //nolint:contextcheck // the study may end first
	for {
		var slot string
		select {
		case slot = <-s.slots:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		t, err := s.suggest(ctx, slot)
		if err != nil {
			s.slots <- slot
			return nil, err
		}
		unmet := s.space.Unmet(t.Point)
		if len(unmet) == 0 {
			return t, nil
		}
		// The text of a constraint, which the server has, allows more than its function.
		why := fmt.Errorf("%w: the program's function for the constraint %q does not hold", library.ErrInfeasible, unmet[0])
		if err := s.Tell(t, library.Measured{}, why); err != nil { //nolint:contextcheck // the caller has not got the trial
			return nil, err
		}
	}
}

// suggest asks for a trial for a slot until there is one.
func (s *Study) suggest(ctx context.Context, slot string) (*library.Evaluation, error) {
	request := suggestRequest{Parent: s.id, ClientID: slot, Count: 1, Wait: seconds(suggestWait)}
	for {
		var answer suggestAnswer
		err := s.call(ctx, "SuggestTrials", request, &answer)
		switch state := study.State(strings.TrimPrefix(string(answer.StudyState), "STUDY_STATE_")); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case len(answer.Trials) > 0:
			return s.hold(&answer.Trials[0], slot, time.Duration(answer.Lease)) //nolint:contextcheck // its lease is renewed after this call
		case state.Terminal():
			return nil, s.end(state, answer.Reason)
		}
	}
}

// end notes that the study has ended. It returns the error of Ask.
func (s *Study) end(state study.State, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; state == study.Failed {
		s.over = fmt.Errorf("%w: %s", library.ErrFailed, reason)
	}
	return fmt.Errorf("the study has %w: %s", library.ErrEnded, reason)
}

// hold begins to hold a trial.
func (s *Study) hold(m *trialMessage, slot string, length time.Duration) (*library.Evaluation, error) {
	t := library.NewEvaluation(slot, m.Number, m.attempt(), s.point(m.Parameters))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Err() != nil {
		return nil, library.ErrClosed
	}
	s.over, s.ended = nil, false // somebody may have raised the budget
	s.leases[t] = &lease{}
	s.background.Go(func() { s.keep(t, length) })
	return t, nil
}

// keep renews the lease of a trial until it has ended.
func (s *Study) keep(t *library.Evaluation, length time.Duration) {
	ticks := time.NewTicker(max(length/3, time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-t.Over():
			return
		case <-s.life.Done():
			return
		}
		ctx, cancel := context.WithTimeout(s.life, length)
		var answer beatAnswer
		err := s.call(ctx, "HeartbeatTrials", beatRequest{
			Parent: s.id, ClientID: t.Client, Trials: []int{t.Number}, Attempts: []int{t.Attempt},
		}, &answer)
		cancel()
		if err != nil && s.life.Err() == nil { // the server may come back before the lease ends
			s.log.Warn("the lease of a trial was not renewed", "study", s.id, "trial", t.Number, "error", err)
		}
		for _, i := range answer.Instructions {
			s.instruct(t, i)
		}
	}
}

// instruct notes what the server says about an evaluation.
func (s *Study) instruct(t *library.Evaluation, i instructionMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[t]
	if l == nil {
		return
	}
	switch strings.TrimPrefix(string(i.Action), "TRIAL_ACTION_") {
	case "PRUNE":
		l.told = fmt.Errorf("%w: %s", library.ErrStopped, i.Reason)
	case "ABANDON":
		l.told = fmt.Errorf("%w: %s", library.ErrEnded, i.Reason)
		s.free(t, l)
		t.End(fmt.Errorf("trial %d has %w: %s", t.Number, library.ErrEnded, i.Reason))
	}
}

// free lets the trial's slot be used for another one. s.mu MUST be held.
func (s *Study) free(t *library.Evaluation, l *lease) {
	if !l.freed {
		l.freed = true
		s.slots <- t.Client // there is room for all of them
	}
}

// Instruction implements library.Binding.
func (s *Study) Instruction(t *library.Evaluation) error {
	if err := t.Ended(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return library.ErrClosed
	}
	if l := s.leases[t]; l != nil {
		return l.told
	}
	return nil
}

// Tell implements library.Binding.
func (s *Study) Tell(t *library.Evaluation, found library.Measured, err error) error {
	l, lost := s.held(t, err)
	if lost != nil {
		return lost
	}
	patience := s.Patience
	back := errors.Is(err, library.ErrInterrupted) && !errors.Is(err, library.ErrStopped) && !errors.Is(err, library.ErrInfeasible)
	if back {
		patience = min(patience, handBackPatience)
	}
	ctx, cancel := context.WithTimeout(s.life, patience)
	defer cancel()
	if !back {
		if err := s.flush(ctx, t); err != nil {
			return err
		}
	}
	var answer trialAnswer
	method, request := s.ending(t, found, err)
	failed := s.call(ctx, method, request, &answer)
	if s.refused(failed, codePrecondition) && s.hasEnded(ctx, t) {
		failed = fmt.Errorf("trial %d has %w: %w", t.Number, library.ErrEnded, failed)
	}
	if failed == nil || back || errors.Is(failed, library.ErrEnded) {
		s.forget(t, l)
	}
	if failed == nil && answer.Trial.state().Terminal() {
		s.progress.Add(s.result(&answer.Trial))
		s.progress.Tell(s.standing)
	}
	return failed
}

// held returns what is known of a trial that ends with err, or why it cannot end.
func (s *Study) held(t *library.Evaluation, err error) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil, library.ErrClosed
	}
	l := s.leases[t]
	if l == nil || l.freed && err != nil { // a value counts, also if the lease was lost
		delete(s.leases, t)
		return nil, fmt.Errorf("trial %d has %w", t.Number, library.ErrEnded)
	}
	return l, nil
}

// Turn implements library.Binding.
func (s *Study) Turn(ctx context.Context, t *library.Evaluation, found library.Measured, err error) (*library.Evaluation, error) {
	failed := s.Tell(t, found, err) //nolint:contextcheck // a result is sent also after ctx has ended
	if failed != nil && !errors.Is(failed, library.ErrEnded) {
		return nil, failed
	}
	return s.Ask(ctx)
}

// forget forgets a trial.
func (s *Study) forget(t *library.Evaluation, l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, t)
	s.free(t, l)
	t.End(fmt.Errorf("trial %d has %w", t.Number, library.ErrEnded))
}

// hasEnded reports whether a trial, or the attempt that this process holds, has ended.
func (s *Study) hasEnded(ctx context.Context, t *library.Evaluation) bool {
	var answer trialAnswer
	if err := s.call(ctx, "GetTrial", nameRequest{Name: s.nameOf(t.Number)}, &answer); err != nil {
		return false
	}
	m := &answer.Trial
	return m.state() != study.TrialRunning || m.attempt() != t.Attempt
}

// ending returns the call that tells how a trial has ended.
func (s *Study) ending(t *library.Evaluation, found library.Measured, err error) (method string, request any) {
	held := s.about(t)
	infeasible := errors.Is(err, library.ErrInfeasible)
	switch {
	case err == nil:
		return "CompleteTrial", completeRequest{heldTrial: held, measured: measuredBy(found)}
	case errors.Is(err, library.ErrStopped):
		return "CompleteTrial", completeRequest{heldTrial: held, Pruned: true}
	case errors.Is(err, library.ErrInterrupted) && !infeasible:
		return "ReleaseTrial", releaseRequest{held, messaging.ReasonLeaving}
	}
	f := library.Failure(messaging.ReasonReported, err)
	if infeasible {
		f.Reason = messaging.ReasonInfeasible
	}
	return "FailTrial", failRequest{held, infeasible, f.Reason, strings.ToValidUTF8(f.Message, "")}
}

// about returns what a request about a trial begins with.
func (s *Study) about(t *library.Evaluation) heldTrial {
	return heldTrial{s.nameOf(t.Number), t.Client, t.Attempt}
}

// nameOf returns the API's name of a trial.
func (s *Study) nameOf(number int) string { return fmt.Sprintf("%s/trials/%d", s.id, number) }

// Enqueue implements library.Binding.
func (s *Study) Enqueue(point map[string]any) error {
	return s.insert("EnqueueTrial", s.inserted(point))
}

// Continue implements library.Binding.
func (s *Study) Continue(trial int) error {
	err := s.call(s.life, "EnqueueTrial", continueRequest{s.inserted(map[string]any{}), trial}, nil)
	if !s.refused(err, codePrecondition) && !s.refused(err, codeNotFound) && !s.refused(err, codeInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", study.ErrInvalid, err)
}

// Add implements library.Binding.
func (s *Study) Add(found library.Measured, point map[string]any) error {
	return s.insert("AddTrial", addRequest{s.inserted(point), measuredBy(found)})
}

// inserted returns what a request begins with that makes a trial of a point.
func (s *Study) inserted(point map[string]any) enqueueRequest {
	return enqueueRequest{Parent: s.id, RequestID: rand.Text(), Parameters: point}
}

// insert makes a call that makes a trial.
func (s *Study) insert(method string, request any) error {
	var answer trialAnswer
	err := s.call(s.life, method, request, &answer)
	switch {
	case s.refused(err, codeInvalid):
		return fmt.Errorf("%w: %w", study.ErrInvalid, err)
	case s.refused(err, codePrecondition):
		return fmt.Errorf("the study has %w: %w", library.ErrEnded, err)
	case err != nil:
		return err
	}
	if answer.Trial.state().Terminal() {
		s.progress.Add(s.result(&answer.Trial))
		s.progress.Tell(s.standing)
	}
	return nil
}
