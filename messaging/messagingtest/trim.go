package messagingtest

import (
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// trim: what comes before the cursor is deleted, of one study or of all; the rest, and
// the cursor's own message, stay.
func trim(f *fixture) {
	l, w := f.pair()
	f.claims(w, "a", 3)
	f.claims(w, "b", 2)
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	second := f.readClaims(r, "a", 1, 2)
	f.ok(l.Trim(f.ctx, messaging.StreamClaim, "a", second, 1), "trim nothing")
	f.readClaims(f.openReader(l, messaging.StreamClaim, messaging.Cursor{}), "a", 1, 3)
	f.ok(l.Trim(f.ctx, messaging.StreamClaim, "a", second, second.Sequence), "trim a study")
	fresh := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	f.readClaims(fresh, "a", 2, 3)
	last := f.readClaims(fresh, "b", 1, 2)
	f.want(w.Claim(f.ctx, "again", claim(attempt("a", 2), "w")), messaging.ErrClaimed, "claim what was kept")
	f.ok(w.Claim(f.ctx, "again", claim(attempt("a", 1), "w")), "claim what was trimmed")

	f.ok(l.Trim(f.ctx, messaging.StreamClaim, "", last, 1000), "trim all studies")
	rest := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	f.readClaims(rest, "b", 2, 2)
	f.readClaims(rest, "a", 1, 1)
	f.end(rest)
	// A reader that continues from a cursor whose message is gone loses nothing.
	f.readClaims(f.openReader(l, messaging.StreamClaim, second), "b", 2, 2)
	if err := l.Trim(f.ctx, messaging.StreamClaim, "*", last, last.Sequence); err == nil {
		f.Error("a wildcard was trimmed")
	}

	f.ok(w.PublishResult(f.ctx, result(attempt("a", 1), "w", 1)), "publish")
	f.ok(w.PublishResult(f.ctx, result(attempt("b", 1), "w", 2)), "publish")
	results := f.openReader(l, messaging.StreamResult, messaging.Cursor{})
	f.next(results)
	end := f.next(results).Cursor
	f.ok(l.Trim(f.ctx, messaging.StreamResult, "", end, end.Sequence), "trim the results")
	results = f.openReader(l, messaging.StreamResult, messaging.Cursor{})
	if e := f.next(results); e.Result == nil || e.Result.Study != "b" {
		f.Errorf("read %+v, want the result that was last", e.Result)
	}
	f.end(results)
}

// trimOther: a cursor of a stream that was replaced deletes nothing of the new one, though
// its sequence is higher.
func trimOther(f *fixture) {
	l, w := f.pair()
	f.claims(w, "a", 3)
	old := f.readClaims(f.openReader(l, messaging.StreamClaim, messaging.Cursor{}), "a", 1, 3)
	f.Recreate(messaging.StreamClaim)
	f.ok(l.Setup(f.ctx, []string{Pool}), "set up again")
	f.claims(w, "b", 4)
	f.ok(l.Trim(f.ctx, messaging.StreamClaim, "", old, old.Sequence), "trim")
	f.ok(l.Trim(f.ctx, messaging.StreamClaim, "", messaging.Cursor{}, 1000), "trim before nothing")
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	changed := f.readClaims(r, "b", 1, 4)
	changed.Timestamp = changed.Timestamp.Add(time.Second)
	f.ok(l.Trim(f.ctx, messaging.StreamClaim, "", changed, changed.Sequence), "trim before a message that was replaced")
	f.readClaims(f.openReader(l, messaging.StreamClaim, messaging.Cursor{}), "b", 1, 4)
}

// waiting: the queue's attempts are listed by study, and can be taken out of it.
func waiting(f *fixture) {
	l := f.leader(1)
	f.assign(l, assignments("s", 3)...)
	f.assign(l, assignment("other", 1))
	list := func(study string) []int {
		f.Helper()
		ids, err := l.Waiting(f.ctx, study)
		f.ok(err, "list the queue")
		var trials []int
		for _, id := range ids {
			if id.Study != study || id.Attempt != 1 || id.Nonce != "" {
				f.Errorf("the queue has %+v of study %s", id, study)
			}
			trials = append(trials, id.Trial)
		}
		slices.Sort(trials)
		return trials
	}
	if got := list("s"); !slices.Equal(got, []int{1, 2, 3}) {
		f.Errorf("the queue has the trials %v, want 1 to 3", got)
	}
	f.ok(l.Retract(f.ctx, []messaging.AttemptID{attempt("s", 2), {Study: "s", Trial: 3, Attempt: 1}}), "retract")
	if got := list("s"); !slices.Equal(got, []int{1}) {
		f.Errorf("the queue has the trials %v, want 1", got)
	}
	w := f.Worker("w", Pool)
	d := f.fetch(w)
	f.ok(d.Ack(f.ctx), "acknowledge")
	if d = f.fetch(w); d.Assignment().Study != "other" {
		f.Errorf("fetched %+v, want what was not retracted", d.Assignment().AttemptID)
	}
	f.ok(d.Ack(f.ctx), "acknowledge")
	f.nothing(w)
	if got := list("s"); len(got) != 0 {
		f.Errorf("the queue has the trials %v, want none", got)
	}
}

// firstClaim: the oldest claim of some attempts is found.
func firstClaim(f *fixture) {
	l := f.leader(1)
	f.claims(f.Worker("w", Pool), "s", 4)
	at := f.readClaims(f.openReader(l, messaging.StreamClaim, messaging.Cursor{}), "s", 1, 3)
	got, err := l.FirstClaim(f.ctx, []messaging.AttemptID{attempt("s", 9), attempt("s", 4), attempt("s", 3)})
	f.ok(err, "find the first claim")
	if got != at.Sequence {
		f.Errorf("the first claim is message %d, want %d", got, at.Sequence)
	}
	got, err = l.FirstClaim(f.ctx, []messaging.AttemptID{attempt("s", 9)})
	f.ok(err, "find no claim")
	if got != 0 {
		f.Errorf("the claim of an unclaimed attempt is message %d", got)
	}
}

// keepPools: a pool that was just set up stays.
func keepPools(f *fixture) {
	l := f.leader(1)
	f.ok(l.KeepPools(f.ctx, nil), "keep no pool")
	f.assign(l, assignment("s", 1))
	f.fetch(f.Worker("w", Pool))
}
