package messaging

// Disposition is what was done with a result.
type Disposition string

// The dispositions of results, in Control.Disposition.
const (
	Folded    Disposition = "folded"    // applied to the trial
	Duplicate Disposition = "duplicate" // the same result was applied before
	Late      Disposition = "late"      // the trial or the attempt had already ended
	Unknown   Disposition = "unknown"   // no such study, trial, attempt or nonce
	Poison    Disposition = "poison"    // unreadable
)

// The values of Failure.Reason that workers write.
const (
	ReasonCommand    = "command"    // the program could not be started
	ReasonExit       = "exit"       // it exited with a code other than 0
	ReasonSignal     = "signal"     // a signal killed it
	ReasonNoValue    = "no-value"   // it succeeded without reporting a value
	ReasonReports    = "reports"    // a warning: some of what it reported was left out
	ReasonReported   = "reported"   // it reported its own failure
	ReasonTimeout    = "timeout"    // it ran too long
	ReasonInfeasible = "infeasible" // it reported that the point cannot be evaluated
	ReasonDiverged   = "diverged"   // its value is NaN or infinite; the leader writes it too
	ReasonRetry      = "retry"      // it asked to be run again
	ReasonLeaving    = "leaving"    // the worker left
	ReasonCancelled  = "cancelled"  // the leader no longer needed it
	ReasonPanic      = "panic"      // a Go function panicked
	ReasonClient     = "client"     // the training code fell silent, or never took the trial
	ReasonInvalid    = "invalid"    // its result cannot be sent
	ReasonPreempted  = "preempted"  // the cluster evicted its pod
	ReasonMemory     = "memory"     // it was killed for using too much memory
	ReasonStart      = "start"      // its pod did not start
	ReasonLog        = "log"        // its pod's log could not be read to the end
)

// The values of Failure.Reason that the leader writes.
const (
	ReasonLost        = "lost"                  // the worker fell silent, or forgot the attempt
	ReasonHandBacks   = "handed back too often" // more often than permitted
	ReasonUnclaimable = "withdrawn too often"   // other messages took the places of the claims
	ReasonAttempts    = "too many attempts"     // the trial's record has no room for another attempt
	ReasonUnreadable  = "unreadable result"     // its outcome is unknown
)
