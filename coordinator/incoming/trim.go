package incoming

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// trimEvery is how often the streams are trimmed, and trimAfter how long messages stay
	// after the ledger has what they say. It is many times the time for which a worker can
	// hold an assignment, and leaves results to a ledger that is restored.
	trimEvery, trimAfter = time.Minute, 10 * time.Minute
	// trimLeast is how many claims must have come since a running study was trimmed: each trim asks the
	// broker several questions.
	trimLeast = 1000
	// trimEnded bounds how many ended studies are trimmed at a time. A new leader finds them all untrimmed,
	// since nobody stores which were.
	trimEnded = 100
)

// TrimRule says what is trimmed.
type TrimRule struct {
	// Every is how often streams are trimmed, and After how long messages stay after the ledger has
	// what they say.
	Every, After time.Duration
	// Least is how many claims must have come since a running study was trimmed.
	Least uint64
}

// DefaultTrimRule returns the rule that coordinators use. Tests shorten it by the environment.
func DefaultTrimRule() TrimRule {
	return TrimRule{
		Every: failpoint.Duration(failpoint.TrimEvery, trimEvery), After: failpoint.Duration(failpoint.TrimAfter, trimAfter),
		Least: trimLeast,
	}
}

// TrimBus is the part of the bus that a Trimmer needs.
type TrimBus interface {
	Trim(ctx context.Context, s messaging.Stream, study string, committed messaging.Cursor, below uint64) error
	Waiting(ctx context.Context, study string) ([]messaging.AttemptID, error)
	Retract(ctx context.Context, ids []messaging.AttemptID) error
	FirstClaim(ctx context.Context, ids []messaging.AttemptID) (uint64, error)
	KeepPools(ctx context.Context, pools []string) error
}

// Trimmer deletes what the broker holds and nobody needs any more. It works in its own
// goroutine; a failure only delays it. It asks the loop for what it has to know, and holds nothing of
// a study meanwhile, so everything may change between two of its steps. That is safe because it
// deletes only messages whose content was committed at least rule.After ago, and assignments of
// attempts that have ended.
//
// A result is not needed once the ledger has what it says: a worker that missed the
// receipt sends it again, as a new message. A claim is needed as long as its attempt is
// open, since the leader finds there who runs it; and as long as anybody could claim the
// attempt again. So claims are deleted by study, up to that of the oldest open attempt,
// and only if the queue holds no assignment of an attempt that has ended. If there is one,
// it is deleted instead, and the claims stay until the next time: by then nobody holds a
// copy that was fetched before.
type Trimmer struct {
	log     *slog.Logger
	bus     TrimBus
	studies *studies.Studies // used in the loop only
	group   *commit.Group    // used in the loop only
	post    inbox.Post
	rule    TrimRule

	samples []sample
	// trimmed holds, by study, the sequence below which its claims were last deleted;
	// finished the ended studies whose last claims were deleted.
	trimmed  map[string]uint64
	finished map[string]bool
}

// NewTrimmer returns the trimmer of a term.
func NewTrimmer(log *slog.Logger, bus TrimBus, s *studies.Studies, g *commit.Group, post inbox.Post, rule TrimRule) *Trimmer {
	return &Trimmer{
		log: log, bus: bus, studies: s, group: g, post: post, rule: rule, trimmed: map[string]uint64{}, finished: map[string]bool{},
	}
}

// sample is what the ledger had committed at some time.
type sample struct {
	at      time.Time
	cursors map[messaging.Stream]messaging.Cursor
}

// trimOf is what a Trimmer has to know of a study.
type trimOf struct {
	id    string
	ended bool
	open  []messaging.AttemptID // those that were claimed
}

// Run trims until ctx ends.
func (t *Trimmer) Run(ctx context.Context) error {
	for range backoff.Ticks(ctx, t.rule.Every) {
		if err := t.trim(ctx); err != nil && ctx.Err() == nil {
			t.log.Warn("could not delete old messages; trying again later", telemetry.LogError, err)
		}
	}
	return nil
}

// trim deletes what was committed long enough ago. The cursors are of an older time than the survey: a claim
// of an attempt that the survey does not have lies behind them, and stays.
func (t *Trimmer) trim(ctx context.Context) error {
	var list []trimOf
	var pools []string
	var old sample
	if !t.post.Wait(ctx, func(now time.Time) {
		old = t.takeSample(now)
		list, pools = t.survey(old.at)
	}) {
		return nil
	}
	if err := t.bus.KeepPools(ctx, pools); err != nil {
		return err
	}
	if c := old.cursors[messaging.StreamResult]; c.Sequence > 0 {
		if err := t.bus.Trim(ctx, messaging.StreamResult, "", c, c.Sequence); err != nil {
			return err
		}
		failpoint.Reach(failpoint.TrimResults)
	}
	c := old.cursors[messaging.StreamClaim]
	for i := range list {
		if err := t.claims(ctx, &list[i], c); err != nil {
			return err
		}
	}
	return nil
}

// takeSample notes what is committed now, and returns the newest sample that is old enough; an
// empty one if there is none, as in the first rule.After of a term.
func (t *Trimmer) takeSample(now time.Time) sample {
	t.samples = append(t.samples, sample{now, t.group.Cursors()})
	for len(t.samples) > 1 && now.Sub(t.samples[1].at) >= t.rule.After {
		t.samples = t.samples[1:]
	}
	if now.Sub(t.samples[0].at) < t.rule.After {
		return sample{}
	}
	return t.samples[0]
}

// survey returns the studies whose claims are to be trimmed up to a time, and the pools that
// are in use. It leaves out studies that cannot be loaded, since nobody knows which of
// their attempts are open.
func (t *Trimmer) survey(upTo time.Time) (list []trimOf, pools []string) {
	used := map[string]bool{study.DefaultPool: true}
	ended := 0
	for r := range t.studies.All() {
		id := r.Spec.ID
		if r.Broken != nil || r.Running() {
			used[r.Pool()] = true
			delete(t.finished, id)
		}
		switch {
		case r.Broken != nil || r.ByClients() || upTo.IsZero():
		case r.Running():
			s := trimOf{id: id}
			for _, a := range r.Engine.Open() {
				s.open = append(s.open, a.Attempt)
			}
			list = append(list, s)
		case r.Status.Ended.Before(upTo) && !t.finished[id] && ended < trimEnded:
			list = append(list, trimOf{id: id, ended: true})
			ended++
		}
	}
	return list, slices.Collect(maps.Keys(used))
}

// claims deletes a study's claims that are no longer needed.
func (t *Trimmer) claims(ctx context.Context, s *trimOf, committed messaging.Cursor) error {
	if committed.Sequence == 0 || !s.ended && committed.Sequence < t.trimmed[s.id]+t.rule.Least {
		return nil
	}
	waiting, err := t.bus.Waiting(ctx, s.id)
	if err != nil {
		return err
	}
	// The queue is looked at BEFORE any claim is deleted. What is queued for an attempt that has ended is deleted alone
	// this time: a worker may have fetched it just now.
	over, ok := t.over(ctx, s.id, waiting)
	switch {
	case !ok:
		return nil
	case len(over) > 0:
		return t.bus.Retract(ctx, over)
	}
	below := committed.Sequence
	first, err := t.bus.FirstClaim(ctx, s.open)
	if err != nil {
		return err
	}
	if first > 0 {
		below = min(below, first)
	}
	if err := t.bus.Trim(ctx, messaging.StreamClaim, s.id, committed, below); err != nil {
		return err
	}
	failpoint.Reach(failpoint.TrimClaims)
	t.trimmed[s.id] = committed.Sequence
	if s.ended {
		delete(t.trimmed, s.id)
		t.post.Wait(ctx, func(time.Time) { t.finished[s.id] = true }) // survey, in the loop, reads it
	}
	return nil
}

// over returns those of a study's attempts that have ended. It returns false if the study
// or the term is gone.
func (t *Trimmer) over(ctx context.Context, id string, attempts []messaging.AttemptID) ([]messaging.AttemptID, bool) {
	var over []messaging.AttemptID
	known := false
	asked := t.post.Wait(ctx, func(time.Time) {
		r := t.studies.Get(id)
		if r == nil || r.Broken != nil {
			return
		}
		known = true
		for _, a := range attempts {
			if r.Engine == nil || r.Engine.Over(a.Trial, a.Attempt) {
				over = append(over, a)
			}
		}
	})
	if !asked || !known { // if the term is gone, the loop may still write both
		return nil, false
	}
	return over, true
}
