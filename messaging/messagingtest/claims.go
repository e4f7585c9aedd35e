package messagingtest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// oneWinner: of many claims of one attempt exactly one is stored.
func oneWinner(f *fixture) {
	const racers, rounds = 20, 10
	l := f.leader(1)
	workers := make([]messaging.Worker, racers)
	for i := range workers {
		workers[i] = f.Worker(fmt.Sprintf("w%d", i), Pool)
	}
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	for round := 1; round <= rounds; round++ {
		errs := make([]error, racers)
		var wg sync.WaitGroup
		for i, w := range workers {
			wg.Go(func() {
				errs[i] = w.Claim(f.ctx, "id", claim(attempt("s", round), fmt.Sprintf("w%d", i)))
			})
		}
		wg.Wait()
		winner := ""
		for i, err := range errs {
			switch {
			case err == nil && winner == "":
				winner = worker(fmt.Sprintf("w%d", i))
			case err == nil:
				f.Fatalf("round %d: both %s and w%d won", round, winner, i)
			default:
				f.want(err, messaging.ErrClaimed, "round %d, racer %d", round, i)
			}
		}
		if e := f.next(r); e.Claim == nil || e.Claim.Worker != winner || e.Claim.Trial != round {
			f.Fatalf("round %d: read %+v, want the claim of %q", round, e.Claim, winner)
		}
	}
	f.end(r)
}

// claimRetry: a claim whose answer was lost can be repeated under its id, and only
// under its id.
func claimRetry(f *fixture) {
	l, w := f.pair()
	c := claim(attempt("s", 1), "w")
	f.ok(w.Claim(f.ctx, "first", c), "claim")
	f.ok(w.Claim(f.ctx, "first", c), "claim again under the same id")
	f.want(w.Claim(f.ctx, "second", c), messaging.ErrClaimed, "claim under another id")
	f.want(f.Worker("v", Pool).Claim(f.ctx, "first", claim(c.AttemptID, "v")),
		messaging.ErrClaimed, "claim of another worker under the same id")
	f.ok(w.Claim(f.ctx, "first", claim(attempt("s", 2), "w")), "claim another attempt under the same id")

	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	f.same("claim (-sent +read)", c, f.next(r).Claim)
	if e := f.next(r); e.Claim == nil || e.Claim.Trial != 2 {
		f.Errorf("second entry is %+v, want the claim of trial 2", e)
	}
	f.end(r)
}

// withdrawRace: either a leader's withdrawal or a worker's claim comes first.
func withdrawRace(f *fixture) {
	const rounds = 20
	l, w := f.pair()
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	for round := 1; round <= rounds; round++ {
		a := assignment("s", round)
		var withdrawn, claimed error
		var wg sync.WaitGroup
		wg.Go(func() { withdrawn = l.Withdraw(f.ctx, a) })
		wg.Go(func() { claimed = w.Claim(f.ctx, "id", claim(a.AttemptID, "w")) })
		wg.Wait()
		if (withdrawn == nil) == (claimed == nil) {
			f.Fatalf("round %d: withdraw: %v, claim: %v, want exactly one success", round, withdrawn, claimed)
		}
		f.want(errors.Join(withdrawn, claimed), messaging.ErrClaimed, "round %d: the loser", round)
		want := worker("w")
		if withdrawn == nil {
			want = messaging.LeaderName
		}
		if e := f.next(r); e.Claim == nil || e.Claim.Worker != want {
			f.Fatalf("round %d: read %+v, want the claim of %q", round, e, want)
		}
	}
	f.end(r)
}

func withdrawAgain(f *fixture) {
	l := f.leader(1)
	a := assignment("s", 1)
	f.ok(l.Withdraw(f.ctx, a), "withdraw")
	f.ok(l.Withdraw(f.ctx, a), "withdraw again")
	f.want(f.Worker("w", Pool).Claim(f.ctx, "id", claim(a.AttemptID, "w")), messaging.ErrClaimed, "claim what is withdrawn")

	f.ok(f.Worker("v", Pool).Claim(f.ctx, "id", claim(attempt("s", 2), "v")), "claim")
	f.want(l.Withdraw(f.ctx, assignment("s", 2)), messaging.ErrClaimed, "withdraw what is claimed")
}

// recreatedStudyName: claims are keyed by the study's id, so a study created again
// under its old name does not see its predecessor's.
func recreatedStudyName(f *fixture) {
	_, w := f.pair()
	f.ok(w.Claim(f.ctx, "a", claim(attempt("id-1", 1), "w")), "claim in the first study")
	f.ok(w.Claim(f.ctx, "b", claim(attempt("id-2", 1), "w")), "claim in the second study of the name")
	if a, b := assignment("id-1", 1), assignment("id-2", 1); a.Subject(messaging.Shard) == b.Subject(messaging.Shard) {
		f.Errorf("both studies publish on %s", a.Subject(messaging.Shard))
	}
}
