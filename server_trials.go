package fantasia

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// lease is what this process knows of a trial that it holds. The study's lock guards it.
type lease struct {
	freed bool  // the slot can be used for another trial
	told  error // what the server says of the evaluation: nil to go on

	reports int // so far
	waiting []measurementMessage
	sent    chan struct{} // closed when no report waits any more; nil if none does
}

// ask implements leader.
func (s *onServer) ask(ctx context.Context) (*Trial, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.open, func() { cancel(ErrClosed) })() //nolint:contextcheck // the study may end first
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
		unmet := s.compiled.Unmet(t.at.values)
		if len(unmet) == 0 {
			return t, nil
		}
		// The text of a constraint, which the server has, allows more than its function.
		if err := s.tell(t, measured{}, fmt.Errorf("%w: the program's function for the constraint %q does not hold", ErrInfeasible, unmet[0])); err != nil { //nolint:contextcheck // the caller has not got the trial
			return nil, err
		}
	}
}

// suggest asks for a trial for a slot until there is one.
func (s *onServer) suggest(ctx context.Context, slot string) (*Trial, error) {
	request := map[string]any{"parent": s.id, "clientId": slot, "count": 1, "wait": fmt.Sprintf("%.0fs", suggestWait.Seconds())}
	for {
		var answer suggestAnswer
		err := s.call(ctx, "SuggestTrials", request, &answer)
		switch state := study.State(strings.TrimPrefix(answer.StudyState, "STUDY_STATE_")); {
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
func (s *onServer) end(state study.State, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; state == study.Failed {
		s.over = fmt.Errorf("%w: %s", ErrFailed, reason)
	}
	return fmt.Errorf("the study has %w: %s", ErrEnded, reason)
}

// hold begins to hold a trial.
func (s *onServer) hold(m *trialMessage, slot string, length time.Duration) (*Trial, error) {
	t := &Trial{lead: s, seed: s.seed, client: slot, number: m.Number, attempt: m.attempt(), at: s.point(m.Parameters), judged: s.aims, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Err() != nil {
		return nil, ErrClosed
	}
	s.over, s.ended = nil, false // somebody may have raised the budget
	s.held[t] = &lease{}
	s.background.Go(func() { s.keep(t, length) })
	return t, nil
}

// keep renews the lease of a trial until it has ended.
func (s *onServer) keep(t *Trial, length time.Duration) {
	ticks := time.NewTicker(max(length/3, time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-t.over:
			return
		case <-s.life.Done():
			return
		}
		ctx, cancel := context.WithTimeout(s.life, length)
		var answer beatAnswer
		err := s.call(ctx, "HeartbeatTrials", map[string]any{
			"parent": s.id, "clientId": t.client, "trials": []int{t.number}, "attempts": []int{t.attempt},
		}, &answer)
		cancel()
		if err != nil && s.life.Err() == nil { // the server may come back before the lease ends
			s.log.Warn("the lease of a trial was not renewed", "study", s.id, "trial", t.number, "error", err)
		}
		for _, i := range answer.Instructions {
			s.instruct(t, i)
		}
	}
}

// instruct notes what the server says about an evaluation.
func (s *onServer) instruct(t *Trial, i instructionMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.held[t]
	if l == nil {
		return
	}
	switch strings.TrimPrefix(i.Action, "TRIAL_ACTION_") {
	case "PRUNE":
		l.told = fmt.Errorf("%w: %s", ErrStopped, i.Reason)
	case "ABANDON":
		l.told = fmt.Errorf("%w: %s", ErrEnded, i.Reason)
		s.free(t, l)
		t.end(fmt.Errorf("trial %d has %w: %s", t.number, ErrEnded, i.Reason))
	}
}

// free lets the trial's slot be used for another one. s.mu MUST be held.
func (s *onServer) free(t *Trial, l *lease) {
	if !l.freed {
		l.freed = true
		s.slots <- t.client // there is room for all of them
	}
}

// instruction implements leader.
func (s *onServer) instruction(t *Trial) error {
	if err := t.ended(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return ErrClosed
	}
	if l := s.held[t]; l != nil {
		return l.told
	}
	return nil
}

// tell implements leader.
func (s *onServer) tell(t *Trial, found measured, err error) error {
	s.mu.Lock()
	l, patience := s.held[t], s.patience
	if s.life.Err() != nil {
		s.mu.Unlock()
		return ErrClosed
	}
	if l == nil || l.freed && err != nil { // a value counts, also if the lease was lost
		delete(s.held, t)
		s.mu.Unlock()
		return fmt.Errorf("trial %d has %w", t.number, ErrEnded)
	}
	s.mu.Unlock()
	back := errors.Is(err, ErrInterrupted) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrInfeasible)
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
	if refused(failed, codePrecondition) && s.hasEnded(ctx, t) {
		failed = fmt.Errorf("trial %d has %w: %w", t.number, ErrEnded, failed)
	}
	if failed == nil || back || errors.Is(failed, ErrEnded) {
		s.settle(t, l)
	}
	if failed == nil && answer.Trial.state().Terminal() {
		s.progress.add(s.result(&answer.Trial))
		s.progress.tell(s.standing)
	}
	return failed
}

// turn implements leader.
func (s *onServer) turn(ctx context.Context, t *Trial, found measured, err error) (*Trial, error) {
	if err := s.tell(t, found, err); err != nil && !errors.Is(err, ErrEnded) { //nolint:contextcheck // a result is sent also after ctx has ended
		return nil, err
	}
	return s.ask(ctx)
}

// settle forgets a trial.
func (s *onServer) settle(t *Trial, l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, t)
	s.free(t, l)
	t.end(fmt.Errorf("trial %d has %w", t.number, ErrEnded))
}

// hasEnded reports whether a trial, or the attempt that this process holds, has ended.
func (s *onServer) hasEnded(ctx context.Context, t *Trial) bool {
	var answer trialAnswer
	if err := s.call(ctx, "GetTrial", map[string]any{"name": s.nameOf(t.number)}, &answer); err != nil {
		return false
	}
	m := &answer.Trial
	return m.state() != Running || m.attempt() != t.attempt
}

// ending returns the call that tells how a trial has ended.
func (s *onServer) ending(t *Trial, found measured, err error) (method string, request map[string]any) {
	request = s.about(t)
	switch {
	case err == nil:
		found.fill(request)
		return "CompleteTrial", request
	case errors.Is(err, ErrStopped):
		request["pruned"] = true
		return "CompleteTrial", request
	case errors.Is(err, ErrInfeasible):
		request["infeasible"] = true
	case errors.Is(err, ErrInterrupted):
		request["reason"] = messaging.ReasonLeaving
		return "ReleaseTrial", request
	}
	f := failure(messaging.ReasonReported, err)
	if errors.Is(err, ErrInfeasible) {
		f.Reason = messaging.ReasonInfeasible
	}
	request["reason"], request["message"] = f.Reason, strings.ToValidUTF8(f.Message, "")
	return "FailTrial", request
}

// about returns what a request about a trial begins with. It names the attempt, so that the request
// cannot be taken for one about a later attempt.
func (s *onServer) about(t *Trial) map[string]any {
	return map[string]any{"name": s.nameOf(t.number), "clientId": t.client, "attempt": t.attempt}
}

// nameOf returns the API's name of a trial.
func (s *onServer) nameOf(number int) string { return fmt.Sprintf("%s/trials/%d", s.id, number) }

// enqueue implements leader.
func (s *onServer) enqueue(point map[string]any) error {
	return s.insert("EnqueueTrial", map[string]any{"parameters": point})
}

// add implements leader.
func (s *onServer) add(found measured, point map[string]any) error {
	request := map[string]any{"parameters": point}
	found.fill(request)
	return s.insert("AddTrial", request)
}

// insert makes a call that makes a trial.
func (s *onServer) insert(method string, request map[string]any) error {
	request["parent"], request["requestId"] = s.id, rand.Text()
	var answer trialAnswer
	err := s.call(s.life, method, request, &answer)
	switch {
	case refused(err, codeInvalid):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case refused(err, codePrecondition):
		return fmt.Errorf("the study has %w: %w", ErrEnded, err)
	case err != nil:
		return err
	}
	if answer.Trial.state().Terminal() {
		s.progress.add(s.result(&answer.Trial))
		s.progress.tell(s.standing)
	}
	return nil
}
