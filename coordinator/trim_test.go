package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/incoming"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// trimsSoon makes coordinators trim all the time.
func (r *rig) trimsSoon() {
	r.trim = incoming.TrimRule{Every: 10 * time.Millisecond, After: 50 * time.Millisecond, Least: 1}
}

// stored returns the attempts whose messages are in a stream, in order.
func (r *rig) stored(s messaging.Stream) []messaging.AttemptID {
	r.t.Helper()
	bus := r.broker.Leader()
	defer bus.Close()
	reader, err := bus.Read(r.ctx(), s, messaging.Cursor{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	last, err := bus.Last(r.ctx(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	var ids []messaging.AttemptID
	for reader.Cursor().Sequence < last {
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		e, err := reader.Next(ctx)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return ids // the last ones were trimmed meanwhile
		case err != nil:
			r.t.Fatal(err)
		case e.Claim != nil:
			ids = append(ids, e.Claim.AttemptID)
		case e.Result != nil:
			ids = append(ids, e.Result.AttemptID)
		}
	}
	return ids
}

// Results that the ledger has, and claims of attempts that have ended, are deleted; the
// claims of open attempts stay, and so do those that came after the oldest of them.
func TestStreamsAreTrimmed(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	r.trimsSoon()
	c := r.leader()
	open := make(gate)
	release := sync.OnceFunc(func() { close(open) })
	r.hand("w", 4, func(a *messaging.Assignment) *messaging.Result {
		if a.Trial == 20 {
			<-open
		}
		return completes(a)
	})
	t.Cleanup(release) // before the worker waits for its slots
	s := r.create(c, "trimmed", 200, 4)
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() >= 199 })
	r.eventually(func() error {
		results, claims := r.stored(messaging.StreamResult), r.stored(messaging.StreamClaim)
		slow := slices.IndexFunc(claims, func(id messaging.AttemptID) bool { return id.Trial == 20 })
		if len(results) != 1 || slow != 0 {
			return fmt.Errorf("%d results and %d claims are left, the open attempt's is number %d; want 1 result, and it to be the first",
				len(results), len(claims), slow)
		}
		if n := len(claims); n < 170 {
			t.Fatalf("%d claims are left; want those since the open attempt's", n)
		}
		return nil
	})
	release()
	r.ends(s.ID)
	r.eventually(func() error {
		if claims := r.stored(messaging.StreamClaim); len(claims) != 1 {
			return fmt.Errorf("%d claims are left of an ended study, want the last one", len(claims))
		}
		return nil
	})
	r.verify(s.ID, 200, 200)
}

// An assignment of an attempt that has ended is taken out of the queue before its claim is
// deleted: a worker that comes later must not run it.
func TestTrimmedClaimsAreNotClaimedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	r.trimsSoon()
	c := r.leader()
	s := r.create(c, "withdrawn", 50, 4) // nobody evaluates it
	r.eventually(func() error {
		if n := r.broker.Queued(study.DefaultPool); n == 0 {
			return errors.New("nothing is queued")
		}
		return nil
	})
	if err := c.Stop(r.ctx(), s.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	r.ends(s.ID)
	r.eventually(func() error {
		if n := r.broker.Queued(study.DefaultPool); n != 0 {
			return fmt.Errorf("%d assignments of an ended study are queued", n)
		}
		return nil
	})
	ran := make(chan messaging.AttemptID, 100)
	r.hand("w", 4, func(a *messaging.Assignment) *messaging.Result {
		if a.Study == s.ID {
			ran <- a.AttemptID
		}
		return completes(a)
	})
	other := r.create(c, "other", 20, 4)
	r.ends(other.ID)
	if len(ran) > 0 {
		t.Errorf("%+v of the stopped study was run", <-ran)
	}
	r.verify(other.ID, 20, 20)
}

// What is trimmed changes nothing for a leader that takes over, and nothing that it has
// not read is trimmed.
func TestTakeoverAfterTrimming(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	r.trimsSoon()
	r.hand("w", 4, nil)
	var id string
	for i := range 4 {
		c := r.leader()
		if i == 0 {
			id = r.create(c, "handed on", 240, 4).ID
		}
		r.until(id, func(s ledger.Summary) bool { return s.Status.Counts.Ended() >= 60*(i+1) })
		c.stop()
	}
	r.leader()
	r.ends(id)
	r.verify(id, 240, 240)
}
