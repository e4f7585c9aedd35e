package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// step is what one event leads to: the Output as far as it is made. All parts of the engine write
// into it, and it is empty between two events.
//
// Each changed record is in the Output once, as it is at the end of the step. So whoever changes a
// trial's record MUST touch the trial, before or after; whoever changes what the status, the model
// or the study's record holds MUST mark it in changed. What is not marked is not committed, and the
// next leader would not know of it.
type step struct {
	now time.Time // the latest At of an event: it never goes back
	out Output

	trials  []*trial // whose records changed
	whole   []*trial // whose records are at hand and can be packed: see pack
	changed struct{ status, model, study bool }

	answer   *Answer // to the event
	answered *trial  // the trial of the answer, as it is at the end of the step
}

// advance lets the engine's time go on to that of an event. A clock that was set back makes it
// stand still.
func (s *step) advance(at time.Time) {
	if at.After(s.now) {
		s.now = at
	}
}

// touch marks a trial's record as changed. It also stores the times of publishing, which alone
// are not worth a commit.
func (s *step) touch(t *trial) {
	if n := t.sent.attempt; n > 0 {
		if a := &t.rec.Attempts[n-1]; a.Published.IsZero() {
			a.Committed, a.Published = t.sent.committed, t.sent.published
		}
	}
	if t.packed = nil; !t.touched {
		t.touched = true
		s.trials = append(s.trials, t)
	}
}

// reply sets the answer to an event that somebody waits for. It has the trial as it is at the end
// of the step.
func (s *step) reply(t *trial, err error) {
	s.answer, s.answered = &Answer{Err: err}, nil
	if err == nil {
		s.answered = t
	}
}

// restore brings back a trial's record until the end of the step. Whoever changes it MUST
// touch the trial.
func (s *step) restore(t *trial) {
	if t.work == nil {
		t.work = &work{rec: *t.record()}
		s.hold(t)
	}
}

// hold lets the step pack a trial's record when the step ends, if the trial has ended or waits for its first
// attempt then.
func (s *step) hold(t *trial) { s.whole = append(s.whole, t) }

// end moves the changed trials and the answer to the Output, packs the records of ended and enqueued trials,
// and returns the Output. The step is then empty.
func (s *step) end() Output {
	slices.SortFunc(s.trials, func(a, b *trial) int { return cmp.Compare(a.rec.Number, b.rec.Number) })
	for _, t := range s.trials {
		t.touched = false
		s.out.Trials = append(s.out.Trials, t.copy())
	}
	if s.out.Answer = s.answer; s.answered != nil {
		s.out.Answer.Trial = s.answered.copy()
	}
	s.pack() // after the copies, which would unpack the records again
	out := s.out
	*s = step{now: s.now}
	return out
}

// pack packs the records that are at hand of trials that have ended, or wait for their first attempt.
func (s *step) pack() {
	for _, t := range s.whole {
		if t.work == nil || !t.rec.State.Terminal() && !t.wished() {
			continue
		}
		if t.packed == nil {
			raw, err := json.Marshal(&t.rec)
			if err != nil {
				panic(fmt.Sprintf("engine: trial %d has a record that is no JSON: %v", t.rec.Number, err)) // the ledger has it as JSON
			}
			t.kept, t.packed = t.facts(), compression.Pack(raw)
		}
		t.work = nil
	}
}
