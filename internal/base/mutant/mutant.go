// Package mutant switches guards of the programs off, one at a time, to show that the
// simulator of the shell notices. Only builds with the tag mutants can: in all others every
// guard is on, and the compiler removes the question.
package mutant

// Guard names a guard.
type Guard string

// The guards that can be switched off.
const (
	// LedgerEpoch refuses commits of a leader that has been replaced.
	LedgerEpoch Guard = "ledger-epoch"
	// LedgerOrder refuses a commit that is not the next one after the leader's last.
	LedgerOrder Guard = "ledger-order"
	// CommitFirst releases effects only once the ledger has what they follow from.
	CommitFirst Guard = "commit-first"
	// Answer answers calls only once the ledger has what they asked for.
	Answer Guard = "answer"
	// Raise gives the leaders of a restored ledger epochs above all that the broker has seen.
	Raise Guard = "raise"
	// WorkerLease gives the attempts of silent workers up.
	WorkerLease Guard = "worker-lease"
	// Claim keeps a worker from an attempt that another one has claimed.
	Claim Guard = "claim"
	// Resend sends a result again until its receipt arrives.
	Resend Guard = "resend"
)

// All returns all guards.
func All() []Guard {
	return []Guard{LedgerEpoch, LedgerOrder, CommitFirst, Answer, Raise, WorkerLease, Claim, Resend}
}
