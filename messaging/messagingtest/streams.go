package messagingtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// resultAgain: a result that is sent again, because its receipt was lost, is read again
// by a live reader and by a later one.
func resultAgain(f *fixture) {
	l, w := f.pair()
	r := f.openReader(l, messaging.StreamResult, messaging.Cursor{})
	sent := result(attempt("s", 1), "w", 0.25)
	f.ok(w.PublishResult(f.ctx, sent), "publish")
	first := f.next(r)
	f.same("result (-sent +read)", sent, first.Result)
	f.ok(w.PublishResult(f.ctx, sent), "publish again")
	again := f.next(r)
	if again.Cursor.Sequence <= first.Cursor.Sequence || again.Result == nil {
		f.Errorf("read %+v after %+v, want the result again at a later sequence", again, first)
	}
	f.end(r)
	if e := f.next(f.openReader(l, messaging.StreamResult, first.Cursor)); e.Cursor != again.Cursor {
		f.Errorf("from the first's cursor %+v is next, want %+v", e.Cursor, again.Cursor)
	}
	if e := f.next(f.openReader(l, messaging.StreamResult, messaging.Cursor{})); e.Cursor != again.Cursor {
		f.Errorf("from the start %+v is next, want only the newest, %+v", e.Cursor, again.Cursor)
	}
}

func readFromCursor(f *fixture) {
	const n, cut = 10, 4
	l, w := f.pair()
	if last, err := l.Last(f.ctx, messaging.StreamClaim); err != nil || last != 0 {
		f.Errorf("last of an empty stream is %d, %v, want 0", last, err)
	}
	for i := range n {
		f.ok(w.Claim(f.ctx, "id", claim(attempt("s", i+1), "w")), "claim")
	}
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	var cursor messaging.Cursor
	for i := range n {
		e := f.next(r)
		if e.Claim == nil || e.Claim.Trial != i+1 || e.Stream != messaging.StreamClaim {
			f.Fatalf("entry %d is %+v, want the claim of trial %d", i, e, i+1)
		}
		if i+1 == cut {
			cursor = e.Cursor
		}
		last, err := l.Last(f.ctx, messaging.StreamClaim)
		f.ok(err, "last")
		if reached := e.Cursor.Sequence >= last; reached != (i+1 == n) {
			f.Errorf("entry %d: sequence %d of %d", i, e.Cursor.Sequence, last)
		}
	}
	f.end(r)

	r = f.openReader(l, messaging.StreamClaim, cursor)
	f.readClaims(r, "s", cut+1, n)
	f.end(r)
	if _, err := l.Read(f.ctx, "OTHER", messaging.Cursor{}); err == nil {
		f.Error("a stream of another name could be read")
	}
}

// readClaims reads the claims of the trials from first to last, in order.
func (f *fixture) readClaims(r messaging.Reader, study string, first, last int) (end messaging.Cursor) {
	f.Helper()
	for trial := first; trial <= last; trial++ {
		e := f.next(r)
		if e.Claim == nil || e.Claim.Study != study || e.Claim.Trial != trial {
			f.Fatalf("read %+v, want the claim of trial %d of study %s", e.Claim, trial, study)
		}
		end = e.Cursor
	}
	return end
}

// recreatedUnderReader: a live reader notices that its stream was deleted and created
// again, and skips nothing of the new one, although its sequences start over.
func recreatedUnderReader(f *fixture) {
	const before, after = 20, 40
	l, w := f.pair()
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	f.claims(w, "old", before)
	cursor := f.readClaims(r, "old", 1, before)
	f.Recreate(messaging.StreamClaim)
	f.claims(w, "new", after)
	if end := f.readClaims(r, "new", 1, after); end.Created.Equal(cursor.Created) {
		f.Errorf("the cursor still says that the stream is of %v", cursor.Created)
	}
	f.end(r)
}

// claims claims the trials from 1 to n, in order. A stream that is just being recreated
// can lose a message, so it is sent again, as a worker does.
func (f *fixture) claims(w messaging.Worker, study string, n int) {
	f.Helper()
	for i := range n {
		for {
			err := w.Claim(f.ctx, "id", claim(attempt(study, i+1), "w"))
			if errors.Is(err, messaging.ErrClaimed) || f.ctx.Err() != nil {
				f.Fatalf("claim: %v", err)
			}
			if err == nil {
				break
			}
		}
	}
}

// recreatedWhileAway: with a cursor of a deleted stream, the new one is read from its
// first message, whether or not it has passed the old sequence.
func recreatedWhileAway(f *fixture) {
	l, w := f.pair()
	for _, n := range []int{2, 30} {
		f.claims(w, "old", 10)
		cursor := f.readClaims(f.openReader(l, messaging.StreamClaim, messaging.Cursor{}), "old", 1, 10)
		f.Recreate(messaging.StreamClaim)
		f.claims(w, "new", n)
		r := f.openReader(l, messaging.StreamClaim, cursor)
		f.readClaims(r, "new", 1, n)
		f.end(r)
		f.Recreate(messaging.StreamClaim)
	}
}

// recreatedAndReplaced: if the new stream has passed the cursor's sequence and has no
// message there, only its creation time distinguishes it from the old one.
func recreatedAndReplaced(f *fixture) {
	const before, after = 10, 15
	l, w := f.pair()
	publish := func(trial int) {
		f.Helper()
		for w.PublishResult(f.ctx, result(attempt("s", trial), "w", 1)) != nil {
			f.ok(f.ctx.Err(), "publish")
		}
	}
	for trial := range before {
		publish(trial + 1)
	}
	cursor := f.last(l, f.openReader(l, messaging.StreamResult, messaging.Cursor{}), messaging.StreamResult).Cursor
	f.Recreate(messaging.StreamResult)
	for trial := range after {
		publish(trial + 1)
	}
	publish(before) // moves the message away from the cursor's sequence
	r := f.openReader(l, messaging.StreamResult, cursor)
	seen := map[int]bool{}
	for len(seen) < after {
		e := f.next(r)
		if e.Result == nil {
			f.Fatalf("read %+v, want a result", e)
		}
		seen[e.Result.Trial] = true
	}
	f.end(r)
}

func poisonAssignment(f *fixture) {
	l, w := f.pair()
	poison := assignment("s", 1)
	raw := []byte(`{"version": 99, "study": 3`)
	f.Inject(poison.Subject(messaging.Shard), raw)
	d, err := w.Fetch(f.ctx)
	f.ok(err, "fetch")
	if d.Err() == nil || d.Assignment() != nil {
		f.Fatalf("a poison message was read as %+v", d.Assignment())
	}
	f.ok(d.Term(f.ctx, "garbage\r\nwith a second line"), "term")
	f.nothing(w)
	f.buried(raw)
	f.assign(l, assignment("s", 2))
	f.ok(f.fetch(w).Ack(f.ctx), "ack the next one")
}

// buried checks that the dead-letter queue has the message.
func (f *fixture) buried(raw []byte) {
	f.Helper()
	dead := f.DeadLetters()
	if !slices.ContainsFunc(dead, func(d []byte) bool { return bytes.Equal(d, raw) }) {
		f.Errorf("dead letters %q, want %q among them", dead, raw)
	}
}

// poisonEntries: a message that cannot be read reaches the leader as an entry with what
// its subject says, and does not block later ones.
func poisonEntries(f *fixture) {
	l, w := f.pair()
	c, res := claim(attempt("s", 1), "w"), result(attempt("s", 1), "w", 1)
	forged, err := messaging.Encode(result(attempt("s", 1), "someone", 1))
	f.ok(err, "encode")
	raws := map[messaging.Stream][][]byte{
		messaging.StreamClaim:  {[]byte("garbage")},
		messaging.StreamResult: {nil, []byte(`{"version":1}`), []byte(`{"version":2}`), forged},
		messaging.StreamMetric: {[]byte(`{"version":1,"metrics":{"loss":null}}`)},
	}
	subjects := map[messaging.Stream]string{
		messaging.StreamClaim:  c.Subject(messaging.Shard),
		messaging.StreamResult: res.Subject(messaging.Shard),
		messaging.StreamMetric: measurement(attempt("s", 1), 1).Subject(messaging.Shard),
	}
	for stream, list := range raws {
		r := f.openReader(l, stream, messaging.Cursor{})
		for _, raw := range list {
			f.Inject(subjects[stream], raw)
			e := f.next(r)
			if e.Err == nil || e.Claim != nil || e.Result != nil || e.Measurement != nil {
				f.Fatalf("%s: %q was read as %+v", stream, raw, e)
			}
			if !bytes.Equal(e.Raw, raw) || e.Subject != subjects[stream] {
				f.Errorf("%s: entry has %q of %q, want %q of %q", stream, e.Raw, e.Subject, raw, subjects[stream])
			}
			if e.ID != (messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1}) {
				f.Errorf("%s: entry is of %+v, want what the subject says", stream, e.ID)
			}
			if stream == messaging.StreamResult && e.Worker != worker("w") {
				f.Errorf("entry is of worker %q, want w", e.Worker)
			}
		}
	}
	r := f.openReader(l, messaging.StreamResult, messaging.Cursor{})
	f.ok(w.PublishResult(f.ctx, res), "publish a good result")
	if e := f.last(l, r, messaging.StreamResult); e.Result == nil {
		f.Errorf("read %+v after the poison, want the result", e)
	}
}

// last reads up to the stream's last entry.
func (f *fixture) last(l messaging.Leader, r messaging.Reader, s messaging.Stream) messaging.Entry {
	f.Helper()
	last, err := l.Last(f.ctx, s)
	f.ok(err, "last")
	for {
		if e := f.next(r); e.Cursor.Sequence >= last {
			return e
		}
	}
}

// foreignName: a worker's bus can only speak in that worker's name, and never in the
// leader's.
func foreignName(f *fixture) {
	l, w := f.pair()
	id := attempt("s", 1)
	for _, name := range []string{"v", messaging.LeaderName} {
		f.want(w.Claim(f.ctx, "id", claim(id, name)), messaging.ErrInvalid, "claim as %s", name)
		f.want(w.PublishResult(f.ctx, result(id, name, 1)), messaging.ErrInvalid, "publish as %s", name)
		f.want(w.Heartbeat(f.ctx, heartbeat(name)), messaging.ErrInvalid, "heartbeat as %s", name)
	}
	f.end(f.openReader(l, messaging.StreamClaim, messaging.Cursor{}))
}

// otherPoolsName: a name that contains a pool belongs to that pool only.
func otherPoolsName(f *fixture) {
	_, w := f.pair()
	other := heartbeat("w")
	other.Worker = messaging.WorkerName("other", "w")
	f.want(w.Heartbeat(f.ctx, other), messaging.ErrInvalid, "heartbeat in the name of another pool's worker")
	f.want(other.Validate(), messaging.ErrInvalid, "a heartbeat whose name and pool differ")
	c := claim(attempt("s", 1), "w")
	c.Worker = other.Worker
	f.want(c.Validate(), messaging.ErrInvalid, "a claim whose name and pool differ")
}

func bury(f *fixture) {
	l := f.leader(1)
	raw := []byte{0, 0xff, '\n'}
	f.ok(l.Bury(f.ctx, "fantasia.result.0.w.s.1.1", "late: trial 1 has ended\n", raw), "bury")
	f.buried(raw)
	for _, size := range []int{1 << 19, 1 << 21} { // too large for the queue, and for a broker's connection
		f.want(l.Bury(f.ctx, "fantasia.result.0.w.s.1.1", "late", make([]byte, size)), messaging.ErrTooLarge, "bury %d bytes", size)
	}
}

// rawEntry: an entry that can be read also holds the bytes as they arrived, since
// encoding it again can give more.
func rawEntry(f *fixture) {
	l := f.leader(1)
	r := f.openReader(l, messaging.StreamResult, messaging.Cursor{})
	res := result(attempt("s", 1), "w", 1)
	raw := []byte(fmt.Sprintf(`{"version":1,"study":"s","trial":1,"attempt":1,"nonce":%q,"worker":%q,"outcome":"failed","logs":%q}`,
		res.Nonce, res.Worker, strings.Repeat("<", 1000)))
	f.Inject(res.Subject(messaging.Shard), raw)
	e := f.next(r)
	if e.Result == nil || !bytes.Equal(e.Raw, raw) || e.Subject != res.Subject(messaging.Shard) {
		f.Errorf("the entry is of %q (%v) with %q, want what came", e.Subject, e.Err, e.Raw)
	}
}

// purge: without all, a study's assignments are deleted and its claims stay.
func purge(f *fixture) {
	l, w := f.pair()
	f.assign(l, append(assignments("gone", 3), assignment("kept", 1))...)
	f.claims(w, "gone", 3)
	f.ok(l.Purge(f.ctx, "gone", false), "purge")
	if got := f.fetch(w).Assignment().Study; got != "kept" {
		f.Errorf("fetched an assignment of study %q, want the other study's", got)
	}
	f.nothing(w)
	f.want(w.Claim(f.ctx, "again", claim(attempt("gone", 1), "w")), messaging.ErrClaimed, "claim again")
	f.assign(l, assignment("kept", 2))
	if err := l.Purge(f.ctx, "*", true); err == nil {
		f.Error("a wildcard was purged")
	}
}

// purgeAll: nothing of the study is left, and a reader continues.
func purgeAll(f *fixture) {
	l, w := f.pair()
	f.claims(w, "gone", 3)
	f.claims(w, "kept", 1)
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	f.readClaims(r, "gone", 1, 2)
	f.ok(w.PublishResult(f.ctx, result(attempt("gone", 1), "w", 1)), "publish")
	f.ok(w.PublishMeasurement(f.ctx, measurement(attempt("gone", 1), 1)), "measure")
	f.ok(l.Purge(f.ctx, "gone", true), "purge")

	fresh := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	cursor := f.readClaims(fresh, "kept", 1, 1)
	f.end(fresh)
	f.end(f.openReader(l, messaging.StreamResult, messaging.Cursor{}))
	f.end(f.openReader(l, messaging.StreamMetric, messaging.Cursor{}))
	f.ok(w.Claim(f.ctx, "id", claim(attempt("other", 1), "w")), "claim")
	f.readClaims(f.openReader(l, messaging.StreamClaim, cursor), "other", 1, 1)
}
