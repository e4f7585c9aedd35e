package engine

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
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
	// Forecast says that the answer is to say what more trials are expected to gain.
	Forecast bool
	At       time.Time
	// observed is how many trials had been observed then, and completed how many had completed.
	observed, completed int
}

// Observed returns how many observations there were, of which the problem holds those that the
// optimiser needs.
func (a *Ask) Observed() int { return a.observed }

// record returns what a trial's record says of the request, beside Request and From.
func (a *Ask) record(cut bool) *record.Ask {
	r := &record.Ask{
		N: a.N, MaxTrials: a.Problem.MaxTrials, Parallelism: a.Problem.Parallelism, Time: a.Problem.Time, Cost: a.Problem.Cost,
		Limits: a.Problem.Limits, Space: a.Space, Fallback: a.Fallback, Cut: cut,
	}
	for _, p := range a.Problem.Pending {
		if p.Seconds > 0 {
			if r.Ran == nil {
				r.Ran = map[int]float64{}
			}
			r.Ran[p.Trial] = p.Seconds
		}
		if p.Likely != nil {
			if r.Likely == nil {
				r.Likely = map[int]study.Values{}
			}
			r.Likely[p.Trial] = p.Likely
		}
	}
	r.Last = a.Problem.Last
	looks := map[int]int{}
	for _, c := range a.Problem.Curves {
		looks[c.Trial] = len(c.Looks)
	}
	for _, p := range a.Problem.Pending {
		if n := looks[p.Trial]; n > 0 {
			if r.Looks == nil {
				r.Looks = map[int]int{}
			}
			r.Looks[p.Trial] = n
		}
	}
	for i := range a.Problem.Objectives {
		r.References = append(r.References, a.Problem.Objectives[i].Reference)
	}
	return r
}

// Receipt tells a worker that its result was committed to the ledger or buried.
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

// DeadLetter is a result that was not applied, kept so that people can inspect it.
type DeadLetter struct {
	Result *messaging.Result
	Reason string
}

// Output is what a step asks of the caller: first records to commit, then effects to carry
// out, in the order of the fields. An Output that was not committed MUST NOT have any effect:
// the caller that cannot commit drops it with the engine, and loads the study again.
type Output struct {
	// Trials are the records that changed, by number. They MUST be committed to the ledger,
	// together with Status, Model and Study and with the cursors of the entries that led to
	// them, BEFORE any effect below. Each is the latest version: of several Outputs that are
	// committed at once, the last one counts.
	//
	// There may be too many for one transaction, as when a study with hundreds of open trials
	// ends. Then the caller commits Study first, then Trials, by number, and Model and Status
	// AFTER them, with the cursors. Load repairs the records after a crash in between.
	Trials []record.Trial
	// Status is the study's status, to be committed with Trials; nil if it did not change.
	Status *record.Status
	// Model is the optimiser's state, to be committed with the first trial of its answer, which
	// is in Trials; nil if it did not change.
	Model *record.Model
	// Study is the specification, to be committed BEFORE or with the trials that follow from
	// it; nil unless the event was an Update.
	Study *record.Study

	// Curves are the changes of trials' curves. The caller may commit them later than
	// the records, but MUST keep their order, and commit them together with the cursor of the
	// reports' stream: what that cursor has passed is not read again.
	Curves []curve.Change

	// Publish are assignments to be sent to the pool AFTER Trials, which open their attempts,
	// are committed: a worker's claim of an attempt that the ledger does not know cancels it.
	// One that is lost needs no care, since unclaimed attempts are published again. Send
	// Published once the broker has one.
	Publish []*messaging.Assignment
	// Withdraw are assignments of attempts that have ended unclaimed. AFTER Trials are
	// committed the caller claims them as messaging.LeaderName, so that nobody else can. One
	// that is lost costs a worker a cancelled evaluation.
	Withdraw []*messaging.Assignment
	// Cancels are messages to workers, to be sent AFTER Trials are committed: a decision to
	// stop a trial early must be durable before anyone acts on it. Each is sent again when a
	// heartbeat reports the attempt.
	Cancels []Cancel
	// Avoids are messages to workers, to be sent AFTER Status is committed, which lists them. A
	// new leader sends them again.
	Avoids []Avoid
	// DeadLetters are results that changed nothing. They MUST be kept BEFORE their Receipts
	// are sent, and may be kept before the records are committed.
	DeadLetters []DeadLetter
	// Receipts answer results. They MUST be sent only AFTER what the results changed is
	// committed and DeadLetters are kept, since a worker forgets a result with its receipt. A
	// worker that gets none sends the result again, and is answered again.
	Receipts []Receipt
	// Ended are the trials that reached a terminal state in this step. The caller exports
	// their traces AFTER Trials are committed.
	Ended []record.Trial
	// Ask is a request to the optimiser, and Fallback one for points that need no model. At
	// most one of each is in flight: the caller MUST answer each with one Suggested, also if it
	// fails. Start them AFTER Trials are committed: they change nothing, but are wasted if the
	// commit fails.
	Ask, Fallback *Ask
	// Judge asks whether a trial goes on. At most one is in flight: the caller MUST answer it with one
	// Judged, also if it fails. Start it AFTER Trials are committed, as Ask.
	Judge *Judge
	// Answer answers a Told, an Enqueue, an Add, a CancelTrial or an Annotate; nil for other
	// events. A user or a client may be told it only AFTER Trials are committed.
	Answer *Answer
	// Warnings are lines for the log, about problems that did not stop the study. They may be
	// written at any time.
	Warnings []string
	// Wake is the earliest time at which a Tick would do something; zero if only other events
	// can. It replaces the one of the last Output.
	Wake time.Time
}

func (o *Output) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...))
}

// cancel tells a worker to stop an attempt. The leader's own claims need no message.
func (o *Output) cancel(worker string, id messaging.AttemptID, reason string) {
	if worker == "" || worker == messaging.LeaderName {
		return
	}
	o.Cancels = append(o.Cancels, Cancel{Worker: worker, Attempt: id, Reason: reason})
}

func (o *Output) avoid(worker string) {
	o.Avoids = append(o.Avoids, Avoid{
		Worker: worker,
		Reason: fmt.Sprintf("%d evaluations failed in a row on this worker while others succeed", avoidAfter),
	})
}

func (o *Output) receipt(r *messaging.Result, d messaging.Disposition) {
	o.Receipts = append(o.Receipts, Receipt{Worker: r.Worker, Attempt: r.AttemptID, Disposition: d})
}
