package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Event is something that happened to a study. Its field At is when, by the leader's
// clock.
type Event interface {
	// when returns At.
	when() time.Time
}

// Remarks are what people say of a trial. The caller MUST have checked them: see
// study.CheckLabels and study.CheckNote.
type Remarks struct {
	Labels map[string]string
	Note   string
}

// The events of a study.
type (
	// Tick lets time pass, which matters for republishing, patience and maxDuration.
	// The first Tick after Load opens the study: before it, the engine asks for no
	// suggestions and publishes nothing.
	Tick struct{ At time.Time }
	// Capacity says how many slots the study's pool has and how many are free,
	// without workers that avoid the study. Send one Capacity per heartbeat, not per
	// tick: between two of them the engine adjusts Free itself, by the claims and
	// results that it reads.
	Capacity struct {
		At          time.Time
		Slots, Free int
		// Hold means that no attempts are begun until the next Capacity. Open ones go on.
		Hold bool
	}
	// Claimed is a claim read from the stream, in the stream's order.
	Claimed struct {
		At    time.Time
		Claim *messaging.Claim
	}
	// Spoiled says that an unreadable message has taken the place of an attempt's
	// claim. The stream keeps one message per place, so nobody can claim the attempt
	// any more. The nonce of Attempt is empty. A readable claim with a wrong nonce is
	// a Claimed, and spoils the attempt as well.
	Spoiled struct {
		At      time.Time
		Attempt messaging.AttemptID
	}
	// Alive says that a worker runs an attempt (from a heartbeat), and whether its program is known to have started.
	Alive struct {
		At      time.Time
		Worker  string
		Attempt messaging.AttemptID
		Begun   bool
	}
	// Lost says that the lease of a claimed attempt's worker ended, or that the
	// worker is alive but does not know of the attempt.
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
	// Measured is a report of a program, read from the stream. It may come more than
	// once. The reports of an attempt come in order.
	Measured struct {
		At          time.Time
		Measurement *messaging.Measurement
	}
	// Recalled brings back a trial's curve from the ledger; Curve is nil if the
	// ledger has none. See Forgotten.
	Recalled struct {
		At    time.Time
		Trial int
		Curve *curve.Curve
	}
	// Suggested answers an Ask or a request for fallbacks, which has no State.
	Suggested struct {
		At          time.Time
		Ask         *Ask
		Suggestions []optimizer.Suggestion
		State       optimizer.State
		// Gain is what more trials are expected to gain; nil if that was not asked for or is not known.
		Gain *optimizer.Gain
		// Cut says that the time for the answer was over before it was complete.
		Cut bool
		// Err is why the optimiser has no answer. optimizer.ErrExhausted ends the
		// study once no trial is open, and so does optimizer.ErrNoFeasible if nothing was
		// pending; any other error leads to fallbacks.
		Err error
	}
	// Judged answers a Judge.
	Judged struct {
		At     time.Time
		Judge  *Judge
		Answer judge.Answer
		// Err is why there is no answer. The trial goes on.
		Err error
	}
	// Published says that the broker has an assignment. The ledger has had it since
	// Committed.
	Published struct {
		At        time.Time
		Committed time.Time
		Attempt   messaging.AttemptID
	}
	// Withdrawn answers a Withdraw. OK says that the leader's own claim came first.
	Withdrawn struct {
		At      time.Time
		Attempt messaging.AttemptID
		OK      bool
	}
	// Recommended says which completed trial has the best posterior mean, given the
	// observations up to a ledger position. It may come after the study has ended.
	Recommended struct {
		At time.Time
		record.Recommendation
	}
	// Seek sets how many trials a client wants to hold, of a study whose trials clients
	// ask for. The engine forgets it once the client holds that many; 0 ends the search.
	// A new leader knows no Seek: its clients ask again.
	Seek struct {
		At     time.Time
		Client string
		Want   int
	}
	// Told is what a client says of the end of a trial that it was given. Outcome is
	// completed, failed, infeasible, handed-back or pruned. The Output has an Answer.
	Told struct {
		At     time.Time
		Client string
		Trial  int
		// Attempt is the attempt that ended; 0 for the last one that the client was given.
		Attempt    int
		Outcome    messaging.Outcome
		Values     study.Values
		Metrics    map[string]float64
		Failure    *messaging.Failure
		Checkpoint string
		// Point is the one that was evaluated, if it is not the suggested one; nil otherwise.
		Point study.Point
	}
	// Enqueue has a point evaluated before the next suggestion. RequestID, if not empty,
	// makes the event safe to repeat. The Output has an Answer.
	Enqueue struct {
		At    time.Time
		Point study.Point
		// Continues, if it is not 0, takes the place of Point: the new trial has the point of this one,
		// which was stopped early, and its checkpoint if there is one. It is not stopped early itself.
		Continues int
		RequestID string
		Remarks
	}
	// Add adds a trial that was evaluated elsewhere. It does not count against the
	// budget. The Output has an Answer.
	Add struct {
		At        time.Time
		Point     study.Point
		Values    study.Values
		Metrics   map[string]float64
		RequestID string
		Remarks
	}
	// Annotate changes the labels, the note and the attributes of a trial, which may have
	// ended. Labels and Attributes are set, the labels of Remove and attributes that are nil are
	// removed; Note is nil if it stays. The Output has an Answer.
	Annotate struct {
		At         time.Time
		Trial      int
		Labels     map[string]string
		Remove     []string
		Note       *string
		Attributes map[string]any
	}
	// CancelTrial ends a trial at a user's request. The Output has an Answer.
	CancelTrial struct {
		At     time.Time
		Trial  int
		Reason string
	}
	// Stop ends the study at a user's request.
	Stop struct {
		At     time.Time
		Reason string
	}
	// Resume continues a study that has ended, at a user's request. Trials that have failed by then no
	// longer count for its end. The Output has an Answer: it refuses if something else ends the study.
	Resume struct{ At time.Time }
	// Update replaces the study's specification. The caller MUST have checked that
	// it is compatible: see study.Compatible. An ended study resumes unless the new
	// specification ends it too: a larger budget resumes a study that had used up
	// its budget, and any Update resumes one that was stopped.
	Update struct {
		At    time.Time
		Study record.Study
	}
	// HandBackAll hands back every claimed attempt without counting it against
	// retries. Send it when the workers are known to be gone: they ran in the same
	// process, which was restarted.
	HandBackAll struct{ At time.Time }
)

func (ev Tick) when() time.Time        { return ev.At }
func (ev Capacity) when() time.Time    { return ev.At }
func (ev Claimed) when() time.Time     { return ev.At }
func (ev Spoiled) when() time.Time     { return ev.At }
func (ev Alive) when() time.Time       { return ev.At }
func (ev Lost) when() time.Time        { return ev.At }
func (ev Finished) when() time.Time    { return ev.At }
func (ev Measured) when() time.Time    { return ev.At }
func (ev Recalled) when() time.Time    { return ev.At }
func (ev Suggested) when() time.Time   { return ev.At }
func (ev Judged) when() time.Time      { return ev.At }
func (ev Published) when() time.Time   { return ev.At }
func (ev Withdrawn) when() time.Time   { return ev.At }
func (ev Recommended) when() time.Time { return ev.At }
func (ev Seek) when() time.Time        { return ev.At }
func (ev Told) when() time.Time        { return ev.At }
func (ev Enqueue) when() time.Time     { return ev.At }
func (ev Add) when() time.Time         { return ev.At }
func (ev CancelTrial) when() time.Time { return ev.At }
func (ev Annotate) when() time.Time    { return ev.At }
func (ev Stop) when() time.Time        { return ev.At }
func (ev Resume) when() time.Time      { return ev.At }
func (ev Update) when() time.Time      { return ev.At }
func (ev HandBackAll) when() time.Time { return ev.At }
