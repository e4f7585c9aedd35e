// Package calls holds the calls of clients that wait for trials, and decides what the quotas of
// their callers allow.
//
// Trials of studies without a command are made only for calls that wait. A waiting call is known to
// this leader alone: it is not stored, and if the leader dies, the client asks the next one. The trials
// in an answer are durable before it is sent, since the answer waits in the commit group. Otherwise a
// client could evaluate a trial that the next leader does not know.
//
// Quotas are looked at in the loop, with the change that they allow. So two callers cannot both take
// the last of a quota.
package calls

import (
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// most bounds the calls that wait for trials at once, since each round of the loop looks at them.
const most = 2000

// ErrBusy says that too many calls wait for trials.
var ErrBusy = study.NewError(study.ErrBusy, "too many clients wait for trials")

// Answer is what a call is answered with: the trials that its client holds, oldest first, and the
// state of the study.
type Answer struct {
	Trials []record.Trial
	State  study.State
	Reason string
}

// Call is one call that waits for trials.
type Call struct {
	// Study is what the call asks for trials of; nil if it was refused.
	Study  *studies.Study
	Client string
	Count  int
	// Until is when the call is answered with what there is.
	Until time.Time
	// Reply answers the call, once. The loop calls it, so it MUST return at once.
	Reply func(Answer, error)
	// Waits is called, at most once, when it is known that the call must wait. The loop calls it, so it MUST
	// return at once.
	Waits func()

	served bool
}

// Calls holds the calls that wait. Trials are made only for them: see engine.Seek. The loop owns it.
type Calls struct {
	studies *studies.Studies
	group   *commit.Group
	// waiting are the calls by study, oldest first; ordered are the studies in the order in which
	// their first calls came.
	waiting map[*studies.Study][]*Call
	ordered []*studies.Study
}

// New returns the calls of a term, in whose commits the answers wait for their trials.
func New(s *studies.Studies, g *commit.Group) *Calls {
	return &Calls{studies: s, group: g, waiting: map[*studies.Study][]*Call{}}
}

// Add lets a call wait until Answer answers it, and has the engine make trials for it. After an error the call
// is not held, and its Reply is not called. AdmitCall MUST have allowed it BEFORE.
func (c *Calls) Add(a *Call, now time.Time) error {
	waiting := 0
	for _, calls := range c.waiting {
		waiting += len(calls)
	}
	if waiting >= most {
		return fmt.Errorf("%w: at most %d", ErrBusy, most)
	}
	if len(c.waiting[a.Study]) == 0 {
		c.ordered = append(c.ordered, a.Study)
	}
	c.waiting[a.Study] = append(c.waiting[a.Study], a)
	c.studies.Step(a.Study, engine.Seek{At: now, Client: a.Client, Want: a.Count})
	return nil
}

// Answer answers the calls that need not wait any longer, once the next commit has made
// their trials durable. It returns when it must be called again; zero for never. The loop calls it in each round,
// after the events and BEFORE the commit, so that a trial and the answer that names it are in one commit.
func (c *Calls) Answer(now time.Time) (next time.Time) {
	for _, r := range c.ordered {
		c.answerOf(r, now)
		for _, a := range c.waiting[r] {
			if a.Waits != nil {
				a.Waits()
				a.Waits = nil
			}
			if next.IsZero() || a.Until.Before(next) {
				next = a.Until
			}
		}
	}
	c.forget()
	return next
}

// answerOf is Answer for the calls of one study. Unless the study's engine has stepped since the last time, only
// calls whose time is over can be answered, and the others are not looked at.
func (c *Calls) answerOf(r *studies.Study, now time.Time) {
	stepped, answered := r.Stepped, false
	holds := holdsOf(r)
	r.Stepped = false
	for _, a := range c.waiting[r] {
		if now.Before(a.Until) && (!stepped || holds[a.Client] == 0 && c.waitable(r)) {
			continue
		}
		if a.served = c.serve(a, now); a.served {
			answered = true
		}
		if r.Stepped { // a search has ended, so that others may hold trials
			holds, stepped, r.Stepped = holdsOf(r), true, false
		}
	}
	c.waiting[r] = slices.DeleteFunc(c.waiting[r], func(a *Call) bool { return a.served })
	r.Stepped = answered // a search that has ended may let others hold fewer or more
}

// forget forgets the studies without calls.
func (c *Calls) forget() {
	c.ordered = slices.DeleteFunc(c.ordered, func(r *studies.Study) bool {
		if len(c.waiting[r]) > 0 {
			return false
		}
		delete(c.waiting, r)
		return true
	})
}

// waitable reports whether calls of clients without trials wait: they do while the study runs.
func (c *Calls) waitable(r *studies.Study) bool { return c.studies.Get(r.Spec.ID) == r && r.Running() }

// holdsOf returns how many of a study's trials each client holds.
func holdsOf(r *studies.Study) map[string]int {
	if r.Engine == nil {
		return nil
	}
	return r.Engine.Holds()
}

// serve answers a call if it need not wait any longer, and reports whether it did. A call is not kept back until
// its client holds all that it asked for: whoever can hold no more for now gets what there is, and so does everybody
// once the study has ended. The leases of the trials that are handed out begin here.
func (c *Calls) serve(a *Call, now time.Time) bool {
	r := a.Study
	switch {
	case c.studies.Get(r.Spec.ID) != r: // it was deleted, or another one has come back from the archive
		a.Reply(Answer{}, fmt.Errorf("study %q: %w", r.Name(), ledger.ErrNotFound))
		return true
	case r.Engine == nil:
		a.Reply(Answer{}, r.Broken)
		return true
	}
	held, more := r.Engine.Held(a.Client, a.Count)
	enough := len(held) == a.Count || len(held) > 0 && !more || !r.Running()
	if !enough && now.Before(a.Until) {
		return false
	}
	a.served = true
	if len(held) < a.Count {
		c.endSearch(a, now)
	}
	for i := range held {
		r.Clients.Hear(lastAttempt(r, &held[i]), now)
	}
	answer := Answer{Trials: held, State: r.Status.State, Reason: r.Status.Reason}
	c.group.Answer(func(err error) { a.Reply(answer, err) })
	return true
}

// endSearch tells the engine that a call has ended, unless its client has another one. Otherwise the engine would
// still make trials for a client that waits no more.
func (c *Calls) endSearch(a *Call, now time.Time) {
	if !slices.ContainsFunc(c.waiting[a.Study], func(b *Call) bool { return !b.served && a.Client == b.Client }) {
		c.studies.Step(a.Study, engine.Seek{At: now, Client: a.Client})
	}
}

// Withdraw ends a call whose caller is gone. If the call has been answered meanwhile, its client holds the
// trials until their leases end: the client may have got the answer, and the leader cannot know.
func (c *Calls) Withdraw(a *Call, now time.Time) {
	calls := c.waiting[a.Study]
	if i := slices.Index(calls, a); i >= 0 {
		c.waiting[a.Study] = slices.Delete(calls, i, i+1)
		c.forget()
		c.endSearch(a, now)
	}
}

// lastAttempt returns the id of a trial's last attempt.
func lastAttempt(r *studies.Study, t *record.Trial) messaging.AttemptID {
	a := t.Last()
	return messaging.AttemptID{Study: r.Spec.ID, Trial: t.Number, Attempt: a.Number, Nonce: a.Nonce}
}
