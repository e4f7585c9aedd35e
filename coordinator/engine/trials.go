package engine

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// trials are all trials of the study, and what is counted of them.
//
// Trial n is at index n-1 of all, and never leaves it. It is in open until its state is terminal,
// and in ended afterwards unless it was cancelled. counts has every trial once, by its state, which
// setState alone changes. position grows with each trial that is made and each that ends, so that
// no two of these events share one; optimisers' requests are put into that order.
type trials struct {
	spec *specification
	step *step

	all      []*trial
	open     []*trial       // by number; the records of those in wishes are packed
	ended    []*trial       // in the order in which they ended
	pending  []*trial       // waiting for their next attempt, longest first; others are skipped
	wishes   []*trial       // enqueued by users and never handed out, oldest first
	requests map[string]int // trials by the request id that made them
	counts   record.Counts
	forgiven int // as in record.Status
	spending spending
	position int64
	bytes    int64 // of all records, as record.Trial.Bytes counts them
}

// load takes over the position, which may be beyond that of the last trial.
func (l *trials) load(s *record.Status) { l.position, l.forgiven = s.Position, s.Forgiven }

func (l *trials) write(s *record.Status) {
	s.Trials, s.Position, s.Counts, s.Forgiven, s.Spent = len(l.all), l.position, l.counts, l.forgiven, l.spending.spent
}

// numbered returns the trial with a number, counted from 1; nil if there is none.
func (l *trials) numbered(n int) *trial {
	if n < 1 || n > len(l.all) {
		return nil
	}
	return l.all[n-1]
}

// find returns the attempt with an id; nil if the study, the trial, the attempt or its
// nonce does not match. The trial has its record at hand.
func (l *trials) find(id messaging.AttemptID) (*trial, *record.Attempt) {
	t := l.numbered(id.Trial)
	if t == nil || id.Study != l.spec.ID {
		return nil, nil
	}
	l.step.restore(t)
	if id.Attempt < 1 || id.Attempt > len(t.rec.Attempts) {
		return nil, nil
	}
	a := &t.rec.Attempts[id.Attempt-1]
	if a.Nonce != id.Nonce && l.spec.on(safetyNonce) {
		return nil, nil
	}
	return t, a
}

// create makes the next trial, which is open and has no state yet: the caller MUST set one. It
// fills in the record's number, position and trace.
func (l *trials) create(r record.Trial) *trial {
	l.position++
	r.Number, r.Created = len(l.all)+1, l.position
	r.TraceID, r.SpanID = l.spec.ids.Trace(), l.spec.ids.Span()
	t := &trial{work: &work{rec: r}}
	l.all = append(l.all, t)
	l.open = append(l.open, t)
	l.remember(t)
	return t
}

// loadTrial adds the next trial of the ledger. count is that of its state.
func (l *trials) loadTrial(t *trial, count *int) {
	r := &t.rec
	*count++
	if r.Source == optimizer.SourceAdded {
		l.counts.Added++
	}
	l.remember(t)
	l.weigh(t)
	l.position = max(l.position, r.Created, r.Ended)
	l.all = append(l.all, t)
	if !r.State.Terminal() {
		l.open = append(l.open, t)
	}
	switch {
	case r.State.Terminal():
		l.step.hold(t)
	case r.State == study.TrialPending && len(r.Attempts) == 0:
		l.wishes = append(l.wishes, t)
		l.step.hold(t)
	case r.State == study.TrialPending:
		l.pending = append(l.pending, t)
	}
}

// weigh counts the bytes of a trial's record anew, which is at hand.
func (l *trials) weigh(t *trial) {
	n := t.rec.Bytes()
	l.bytes += n - int64(t.bytes)
	t.bytes = int32(min(n, math.MaxInt32)) //nolint:gosec // it fits
}

// remember keeps which request made a trial, so that the request can be repeated.
func (l *trials) remember(t *trial) {
	if id := t.rec.RequestID; id != "" {
		l.requests[id] = t.rec.Number
	}
}

// setState changes a trial's state and the study's counts. Nothing else may assign a state, or the
// counts are wrong.
func (l *trials) setState(t *trial, s study.TrialState) {
	if n := l.counts.Of(t.rec.State); n != nil {
		*n--
	}
	t.rec.State = s
	*l.counts.Of(s)++
	l.step.changed.status = true
	l.step.touch(t)
}

// end moves a trial to a terminal state, which it never leaves. history.fold calls it, and tells
// the others.
func (l *trials) end(t *trial, s study.TrialState) {
	l.setState(t, s)
	l.position++
	t.rec.Ended, t.rec.Reached = l.position, nil
	t.rec.Times.Folded = l.step.now
	byNumber := func(t *trial, number int) int { return t.facts().number - number }
	if i, ok := slices.BinarySearchFunc(l.open, t.rec.Number, byNumber); ok {
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.step.hold(t)
}

// wait makes a trial wait for its next attempt, behind those that wait already.
func (l *trials) wait(t *trial) {
	l.noteCost(t)
	l.setState(t, study.TrialPending)
	l.pending = append(l.pending, t)
}

// wish makes a trial that a user has enqueued wait for its first attempt.
func (l *trials) wish(t *trial) {
	l.setState(t, study.TrialPending)
	l.wishes = append(l.wishes, t)
	l.step.hold(t)
}

// next takes the trial that has waited longest for another attempt; nil if none waits.
func (l *trials) next() *trial {
	for len(l.pending) > 0 {
		t := l.pending[0]
		l.pending = l.pending[1:]
		if t.facts().state == study.TrialPending { // it may have ended meanwhile
			return t
		}
	}
	return nil
}

// nextWish takes the enqueued trial that has waited longest, with its record at hand; nil if none waits.
func (l *trials) nextWish() *trial {
	if len(l.wishes) == 0 {
		return nil
	}
	t := l.wishes[0]
	l.wishes = l.wishes[1:]
	l.step.restore(t)
	return t
}

// unwish takes a trial that a user cancels out of the wishes.
func (l *trials) unwish(t *trial) {
	l.wishes = slices.DeleteFunc(l.wishes, func(w *trial) bool { return w == t })
}

// unqueue forgets who waits for an attempt: the study has ended.
func (l *trials) unqueue() { l.pending, l.wishes = nil, nil }

// advance takes a position for an edit, so that what was made of the history before is out of date.
func (l *trials) advance() { l.position++ }

// learn adds a trial to the ended ones. The caller MUST keep the order in which they ended.
func (l *trials) learn(t *trial) { l.ended = append(l.ended, t) }

// byEnd returns the trials that were ended when they were loaded, in the order in which they ended.
func (l *trials) byEnd() []*trial {
	list := make([]*trial, 0, len(l.all))
	for _, t := range l.all {
		if t.rec.State.Terminal() {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *trial) int { return cmp.Compare(a.rec.Ended, b.rec.Ended) })
	l.ended = slices.Grow(l.ended, len(list))
	return list
}

// handedOut returns the open trials that have been handed out at least once, by number. Their records
// are at hand. The caller MUST NOT end any of them meanwhile.
func (l *trials) handedOut() iter.Seq[*trial] {
	return func(yield func(*trial) bool) {
		for _, t := range l.open {
			if t.work != nil && !t.wished() && !yield(t) {
				return
			}
		}
	}
}

// active returns how many open trials have been handed out at least once. Those that
// users have enqueued do not count against the parallelism before.
func (l *trials) active() int { return len(l.open) - len(l.wishes) }

// vacancies returns how many more trials the parallelism allows to hand out.
func (l *trials) vacancies() int { return l.spec.parallelism() - l.active() }

// remaining returns how many more trials the budget allows; if no number of trials bounds the study, at most as many as can be asked for
// at once.
func (l *trials) remaining() int {
	if !l.spec.on(safetyBudget) {
		return 1
	}
	n := maxAsk
	if most := l.spec.Definition.Spec.Budget.MaxTrials; most > 0 {
		n = max(0, most-l.counts.Ended()-len(l.open)) // trials that finish others may be beyond it
	}
	return min(n, l.affordable())
}

// waiting reports whether a trial waits to be handed out, and may be.
func (l *trials) waiting() bool {
	return len(l.wishes) > 0 && l.vacancies() > 0 && l.affordable() > 0 ||
		slices.ContainsFunc(l.pending, func(t *trial) bool { return t.facts().state == study.TrialPending })
}

func (l *trials) lastFailed() *trial {
	for _, t := range slices.Backward(l.ended) {
		if t.facts().state == study.TrialFailed {
			return t
		}
	}
	return nil
}

// failedAtFirst reports whether the first trials that ended have all failed, as those of a program
// that cannot start do. Failures before a resume are as if they had not been.
func (l *trials) failedAtFirst() bool {
	first := l.ended
	for skip := l.forgiven; skip > 0 && len(first) > 0 && first[0].facts().state == study.TrialFailed; skip-- {
		first = first[1:]
	}
	return len(first) >= firstFailures &&
		!slices.ContainsFunc(first[:firstFailures], func(t *trial) bool { return t.facts().state != study.TrialFailed })
}

// firstOf returns the number of the trial that began a trial's configuration: its own,
// unless it continues another one. All of them share a seed and a directory of checkpoints.
func (l *trials) firstOf(t *trial) int {
	n := t.rec.Number
	for before := t.rec.Predecessor; before > 0; before = l.all[n-1].facts().predecessor {
		n = before
	}
	return n
}

// lastWords is what people are told of the failed trial that ended last.
func (l *trials) lastWords() string {
	if t := l.lastFailed(); t != nil {
		if a := t.record().Last(); a != nil && a.Failure != nil {
			if a.Failure.Message != "" {
				return a.Failure.Message
			}
			return a.Failure.Reason
		}
	}
	return "no message"
}
