package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Ask is a request to the optimiser, or for fallbacks, to be answered by Suggested.
type Ask struct {
	// Problem is a snapshot, which the engine does not change.
	Problem *optimizer.Problem
	// State is the committed state of the model.
	State optimizer.State
	N     int
	// Request seeds the optimiser's random source: optimizer.NewRand(seed, Request).
	Request int
	// From is the ledger position of Problem.
	From int64
	// Space is the version of the study's space: see record.Study.
	Space int
	// Fallback says that the request is for fallbacks.
	Fallback bool
	At       time.Time
	// observed is how many trials had been observed then.
	observed int
}

// Observed returns how many observations there were, of which the problem holds those that the
// optimiser needs.
func (a *Ask) Observed() int { return a.observed }

// record returns what a trial's record says of the request, beside Request and From.
func (a *Ask) record(cut bool) *record.Ask {
	return &record.Ask{
		N: a.N, MaxTrials: a.Problem.MaxTrials, Parallelism: a.Problem.Parallelism, Space: a.Space, Fallback: a.Fallback, Cut: cut,
	}
}

// Receipt tells a worker that its result was committed to the ledger or archived.
type Receipt struct {
	Worker      string
	Attempt     messaging.AttemptID
	Disposition messaging.Disposition
}

// Cancel tells a worker that an attempt's result is no longer wanted, or that the
// attempt is to be stopped early.
type Cancel struct {
	Worker  string
	Attempt messaging.AttemptID
	Reason  string
	// Prune says that the worker reports what the attempt has reached.
	Prune bool
}

// Avoid tells a worker to take no more attempts of the study.
type Avoid struct {
	Worker string
	Reason string
}

// Archive keeps a result that was not applied, so that people can inspect it.
type Archive struct {
	Result *messaging.Result
	Reason string
}

// Output is what a step asks of the caller, who MUST first commit the records, and
// then carry out the effects in the order of the fields.
//
// There may be too many records for one transaction, as when a study with hundreds of
// open trials ends. Then the caller commits Study first, then the trials, by number, and
// after them Model and Status. Load repairs the records after a crash in between.
type Output struct {
	// Trials, Status and Model are the records that changed, each in its latest
	// version. Status and Model are nil if they did not change. Only an Update sets
	// Study.
	Trials []record.Trial
	Status *record.Status
	Model  *record.Model
	Study  *record.Study

	// Curves are the changes of trials' curves. The caller may commit them later than
	// the records, but MUST keep their order, and commit them with the cursor of the
	// reports' stream.
	Curves []curve.Change

	Publish  []*messaging.Assignment
	Withdraw []*messaging.Assignment
	Cancels  []Cancel
	Avoids   []Avoid
	Archives []Archive
	Receipts []Receipt
	// Ended are the trials that reached a terminal state in this step. The caller
	// emits their traces.
	Ended []record.Trial
	// Ask is a request to the optimiser, and Fallback one for points that need no
	// model; at most one of each is in flight at a time.
	Ask, Fallback *Ask
	// Answer answers a Told, an Enqueue, an Add, a CancelTrial or an Annotate; nil for other events.
	Answer *Answer
	// Warnings are lines for the log, about problems that did not stop the study.
	Warnings []string
	// Wake is the earliest time at which a Tick would do something; zero if only
	// other events can.
	Wake time.Time
}
