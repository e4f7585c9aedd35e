// Package engine is one study as a pure state machine: events in, effects out.
// It reads no clock, starts no goroutine, does no I/O and draws nothing at
// random by itself: the caller passes the time with each event and a source of
// ids at construction.
//
// The caller must commit an Output's records to the ledger, in one transaction
// with the cursors of the entries that led to it, before it acts on any of the
// Output's effects. An Engine is not safe for concurrent use: one goroutine owns it.
package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Event is something that happened to a study. At is when, by the leader's clock.
type Event interface{ event() }

// The events of a study.
type (
	// Tick lets time pass: outbox republishing, patience, MaxDuration.
	Tick struct{ At time.Time }
	// Capacity says how many slots the study's pool has and how many are free.
	// Workers that avoid the study are not counted.
	Capacity struct {
		At          time.Time
		Slots, Free int
	}
	// Claimed is a claim read from the stream, in the stream's order.
	Claimed struct {
		At    time.Time
		Claim *messaging.Claim
	}
	// Alive says that a worker runs an attempt (from a heartbeat).
	Alive struct {
		At      time.Time
		Worker  string
		Attempt messaging.AttemptID
	}
	// Lost says that the lease of an attempt's worker ended, or that the worker
	// is alive and does not know the attempt.
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
	// Published says that an assignment reached the broker.
	Published struct {
		At      time.Time
		Attempt messaging.AttemptID
	}
	// Withdrawn answers a Withdraw: OK where the leader's own claim was first.
	Withdrawn struct {
		At      time.Time
		Attempt messaging.AttemptID
		OK      bool
	}
	// Stop ends the study at a person's wish.
	Stop struct {
		At     time.Time
		Reason string
	}
	// Update replaces the study's specification by a compatible one (see
	// study.Compatible): a larger budget reopens a study that had completed.
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
func (Alive) event()       {}
func (Lost) event()        {}
func (Finished) event()    {}
func (Suggested) event()   {}
func (Published) event()   {}
func (Withdrawn) event()   {}
func (Stop) event()        {}
func (Update) event()      {}
func (HandBackAll) event() {}

// Ask is a request to the optimiser, to be answered by Suggested.
type Ask struct {
	// Problem is a snapshot: the engine does not change it.
	Problem *optimizer.Problem
	// State is the committed state of the model.
	State optimizer.State
	N     int
	// Request seeds the optimiser's random source: optimizer.NewRand(seed, Request).
	Request int
	// From is the ledger position of Problem.
	From int64
	At   time.Time
}

// Disposition says what became of a result.
type Disposition string

// The dispositions of results.
const (
	Folded    Disposition = "folded"    // applied to the trial
	Duplicate Disposition = "duplicate" // the same result was applied before
	Late      Disposition = "late"      // the trial or the attempt had ended otherwise
	Unknown   Disposition = "unknown"   // no such study, trial, attempt or nonce
	Poison    Disposition = "poison"    // not to be read
)

// Receipt tells a worker that its result is in the ledger, or archived.
type Receipt struct {
	Worker      string
	Attempt     messaging.AttemptID
	Disposition Disposition
}

// Cancel tells a worker that an attempt's result is wanted no more.
type Cancel struct {
	Worker  string
	Attempt messaging.AttemptID
	Reason  string
}

// Avoid tells a worker to take no more attempts of the study.
type Avoid struct {
	Worker string
	Reason string
}

// Archive keeps a result that was not folded, for people to see.
type Archive struct {
	Result *messaging.Result
	Reason string
}

// Output is what a step asks of the caller. First the records are committed,
// then the effects are carried out, in the order of the fields.
type Output struct {
	// Trials, Status and Model are the records that changed, each in its last
	// version; Status and Model are nil where they did not change. Study is
	// only set by an Update.
	Trials []record.Trial
	Status *record.Status
	Model  *record.Model
	Study  *record.Study

	Publish  []*messaging.Assignment
	Withdraw []*messaging.Assignment
	Cancels  []Cancel
	Avoids   []Avoid
	Archives []Archive
	Receipts []Receipt
	// Ended are the trials that reached a terminal state in this step: their
	// traces are to be emitted.
	Ended []record.Trial
	// Ask is a request to the optimiser; at most one is under way at a time.
	Ask *Ask
}

// IDs makes the ids that the engine needs, so that tests make them predictable.
type IDs interface {
	// Nonce is unique to one attempt.
	Nonce() string
	// Trace and Span are a W3C trace id (32 hex digits) and span id (16).
	Trace() string
	Span() string
}

// Settings tune the engine; the zero value of each field means its default.
type Settings struct {
	// Republish is how long a published, unclaimed attempt waits before it is
	// published again. Default 60 s.
	Republish time.Duration
	// PatienceShare is the share of the mean evaluation time that a free slot
	// waits for a fresh suggestion before it takes a ready, staler one or a
	// fallback; PatienceMax bounds the wait. Defaults 0.05 and 2 s.
	PatienceShare float64
	PatienceMax   time.Duration
}

// Engine is one study. Not safe for concurrent use.
type Engine struct {
	_ study.Study // replaced by the implementation
}

// The implementation provides:
//
//	New(spec record.Study, ids IDs, settings Settings, at time.Time) (*Engine, Output, error)
//	Load(spec record.Study, status record.Status, model record.Model, trials []record.Trial, ids IDs, settings Settings, at time.Time) (*Engine, Output, error)
//	(*Engine).Step(Event) Output
//	(*Engine).Status() record.Status, Spec() record.Study, Trial(n int) (record.Trial, bool), Best() (record.Trial, bool)
//	(*Engine).Open() []OpenAttempt   (attempts that are claimed, with their workers: for lease checks)
//	(*Engine).Problem() *optimizer.Problem
