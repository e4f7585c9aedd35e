package study

// State is the state of a study.
type State string

// The states of a study; all but Running are terminal.
const (
	Running   State = "RUNNING"
	Completed State = "COMPLETED"
	Stopped   State = "STOPPED"
	Failed    State = "FAILED"
)

// Terminal reports whether a study in the state has ended.
func (s State) Terminal() bool { return s != Running && s != "" }

// TrialState is the state of a trial.
type TrialState string

// The states of a trial, in the order in which it passes them.
const (
	TrialPending    TrialState = "PENDING"
	TrialQueued     TrialState = "QUEUED"
	TrialClaimed    TrialState = "CLAIMED"
	TrialRunning    TrialState = "RUNNING"
	TrialCompleted  TrialState = "COMPLETED"
	TrialFailed     TrialState = "FAILED"
	TrialInfeasible TrialState = "INFEASIBLE"
	TrialPruned     TrialState = "PRUNED"
	TrialCancelled  TrialState = "CANCELLED"
)

// Terminal reports whether a trial in the state has ended: no later result
// changes it.
func (s TrialState) Terminal() bool {
	switch s {
	case TrialCompleted, TrialFailed, TrialInfeasible, TrialPruned, TrialCancelled:
		return true
	default:
		return false
	}
}

// AttemptState is the state of an attempt.
type AttemptState string

// The states of an attempt; all but AttemptOpen are terminal.
const (
	AttemptOpen       AttemptState = "open"
	AttemptSucceeded  AttemptState = "succeeded"
	AttemptFailed     AttemptState = "failed"
	AttemptLost       AttemptState = "lost"
	AttemptHandedBack AttemptState = "handed-back"
	// AttemptCancelled is an attempt whose result is no longer wanted.
	AttemptCancelled AttemptState = "cancelled"
	// AttemptPruned is an attempt that was stopped early.
	AttemptPruned AttemptState = "pruned"
)

// MaxHandBacks is how often a trial can be handed back without costing a retry.
const MaxHandBacks = 20
