package engine

// guard names a safety check. Builds with the tag mutants can switch each off, to
// show that the simulator notices; in all others every guard is in force.
type guard uint

const (
	guardNonce     guard = 1 << iota // only an attempt's own nonce may speak for it
	guardTerminal                    // a terminal trial never changes
	guardBudget                      // created trials stay within the budget
	guardClaim                       // the first claim wins
	guardParallel                    // open trials stay within the parallelism
	guardRetries                     // retries are bounded
	guardReceipt                     // late results are receipted too
	guardDuplicate                   // a result that was applied is not applied again
	guardOutbox                      // what nobody claims is published again
	guardRepeat                      // a finite space's points are tried once
	guardSpoiled                     // an attempt that nobody can claim is replaced
	guardEarly                       // so is one whose claim's place was taken before it was opened
	guardCurve                       // a trial's curve is of one attempt
	guardRecall                      // a curve that is not in memory is not begun anew
)
