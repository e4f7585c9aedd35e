package messaging

// Disposition says what became of a result.
type Disposition string

// The dispositions of results, in Control.Disposition.
const (
	Folded    Disposition = "folded"    // applied to the trial
	Duplicate Disposition = "duplicate" // the same result was applied before
	Late      Disposition = "late"      // the trial or the attempt had ended otherwise
	Unknown   Disposition = "unknown"   // no such study, trial, attempt or nonce
	Poison    Disposition = "poison"    // not to be read
)

// The values of Failure.Reason that workers write.
const (
	ReasonCommand    = "command"    // the program could not be started
	ReasonExit       = "exit"       // it ended with another exit code than 0
	ReasonSignal     = "signal"     // a signal killed it
	ReasonNoValue    = "no-value"   // it ended well and reported no value
	ReasonReported   = "reported"   // it said itself that it failed
	ReasonTimeout    = "timeout"    // it ran too long
	ReasonInfeasible = "infeasible" // it said that the point cannot be evaluated
	ReasonDiverged   = "diverged"   // its value is NaN or infinite; the leader writes it too
	ReasonRetry      = "retry"      // it asked to be run again
	ReasonLeaving    = "leaving"    // the worker left
	ReasonCancelled  = "cancelled"  // the leader wanted it no more
	ReasonPanic      = "panic"      // a Go function panicked
	ReasonClient     = "client"     // the training code fell silent, or never took it
	ReasonInvalid    = "invalid"    // its result cannot be sent
	ReasonPreempted  = "preempted"  // the cluster took its pod away
	ReasonMemory     = "memory"     // it was killed for its memory
	ReasonStart      = "start"      // its pod did not start
	ReasonLog        = "log"        // its pod's log could not be read to the end
)

// The values of Failure.Reason that the leader writes.
const (
	ReasonLost        = "lost"                  // the worker fell silent, or forgot the attempt
	ReasonHandBacks   = "handed back too often" // more often than is free of charge
	ReasonUnclaimable = "withdrawn too often"   // other messages were in the claims' places
	ReasonAttempts    = "too many attempts"     // the trial's record has no room for another
	ReasonUnreadable  = "unreadable result"     // its outcome is none that there is
)
