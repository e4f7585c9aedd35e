package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

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

// Receipt tells a worker that its result is in the ledger, or archived.
type Receipt struct {
	Worker      string
	Attempt     messaging.AttemptID
	Disposition messaging.Disposition
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
//
// Where the records are too many for one transaction (a study with hundreds of
// open trials ends), the caller commits the trials first, by number, then Model
// and Status; Load mends what a crash in between leaves.
type Output struct {
	// Trials, Status and Model are the records that changed, each in its last
	// version; Status and Model are nil where they did not change. Study is
	// only set by an Update.
	Trials []record.Trial
	Status *record.Status
	Model  *record.Model
	Study  *record.Study

	// Curves are what changed of the trials' curves. Where nothing else did, the
	// caller may commit them later: in the order in which they came, and with the
	// cursor of the reports' stream.
	Curves []curve.Change

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
	// Warnings are for the log: what went wrong without stopping the study.
	Warnings []string
	// Wake is the earliest time at which a Tick would do something; zero where
	// only other events can.
	Wake time.Time
}
