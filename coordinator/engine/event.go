package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Event is something that happened to a study. At is when, by the leader's clock.
type Event interface{ event() }

// The events of a study.
type (
	// Tick lets time pass: outbox republishing, patience, MaxDuration. The first
	// one after Load opens the study: nothing is asked or published before.
	Tick struct{ At time.Time }
	// Capacity says how many slots the study's pool has and how many are free.
	// Workers that avoid the study are not counted. Free is as old as the
	// heartbeats that it is summed from: between two of them the engine counts
	// the claims and results that it reads, so send one Capacity a heartbeat
	// and not one a tick.
	Capacity struct {
		At          time.Time
		Slots, Free int
	}
	// Claimed is a claim read from the stream, in the stream's order.
	Claimed struct {
		At    time.Time
		Claim *messaging.Claim
	}
	// Spoiled says that the place of an attempt's claim is taken by a message that
	// nobody can read: the attempt's stream keeps one message there, so nobody can
	// claim it any more. The nonce of Attempt is empty. A readable claim with another
	// nonce than the attempt's is a Claimed, and spoils the attempt as well.
	Spoiled struct {
		At      time.Time
		Attempt messaging.AttemptID
	}
	// Alive says that a worker runs an attempt (from a heartbeat).
	Alive struct {
		At      time.Time
		Worker  string
		Attempt messaging.AttemptID
	}
	// Lost says that the lease of a claimed attempt's worker ended, or that the
	// worker is alive and does not know the attempt.
	Lost struct {
		At      time.Time
		Attempt messaging.AttemptID
		Reason  string
	}
	// Finished is a result read from the stream, in the stream's order.
	Finished struct {
		At     time.Time
		Result *messaging.Result
	}
	// Measured is a report of a program, read from the stream: once or again, and
	// in the order of its attempt.
	Measured struct {
		At          time.Time
		Measurement *messaging.Measurement
	}
	// Recalled brings back a trial's curve that is in the ledger alone, nil where it
	// has none: see Forgotten.
	Recalled struct {
		At    time.Time
		Trial int
		Curve *curve.Curve
	}
	// Suggested answers an Ask.
	Suggested struct {
		At          time.Time
		Ask         *Ask
		Suggestions []optimizer.Suggestion
		State       optimizer.State
		// Err is why the optimiser has no answer; optimizer.ErrExhausted ends
		// the study once nothing is open, another error leads to fallbacks.
		Err error
	}
	// Published says that an assignment reached the broker, and that it went out
	// once the ledger had it, at Committed.
	Published struct {
		At        time.Time
		Committed time.Time
		Attempt   messaging.AttemptID
	}
	// Withdrawn answers a Withdraw: OK where the leader's own claim was first.
	Withdrawn struct {
		At      time.Time
		Attempt messaging.AttemptID
		OK      bool
	}
	// Recommended says which completed trial has the best posterior mean, by what
	// was observed at a ledger position. It may come after the study has ended.
	Recommended struct {
		At time.Time
		record.Recommendation
	}
	// Stop ends the study at a person's wish.
	Stop struct {
		At     time.Time
		Reason string
	}
	// Update replaces the study's specification by a compatible one (see
	// study.Compatible, which the caller has asked). A study that had ended goes
	// on where the new specification no longer ends it: a larger budget reopens
	// one that had used its budget up, and any Update one that was stopped.
	Update struct {
		At    time.Time
		Study record.Study
	}
	// HandBackAll hands back every claimed attempt free of charge: the workers
	// are known to be gone (a single process that was restarted).
	HandBackAll struct{ At time.Time }
)

func (Tick) event()        {}
func (Capacity) event()    {}
func (Claimed) event()     {}
func (Spoiled) event()     {}
func (Alive) event()       {}
func (Lost) event()        {}
func (Finished) event()    {}
func (Measured) event()    {}
func (Recalled) event()    {}
func (Suggested) event()   {}
func (Published) event()   {}
func (Withdrawn) event()   {}
func (Recommended) event() {}
func (Stop) event()        {}
func (Update) event()      {}
func (HandBackAll) event() {}
