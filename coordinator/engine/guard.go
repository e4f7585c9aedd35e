package engine

// guard names a safety check. Builds with the tag mutants can switch off each guard,
// to show that the simulator notices. In all other builds every guard is on.
type guard uint

const (
	guardNonce     guard = 1 << iota // messages about an attempt must have its nonce
	guardTerminal                    // a terminal trial never changes
	guardBudget                      // created trials stay within the budget
	guardClaim                       // the first claim wins
	guardParallel                    // open trials stay within the parallelism
	guardRetries                     // retries are bounded
	guardReceipt                     // late results get receipts too
	guardDuplicate                   // a result is not applied twice
	guardOutbox                      // unclaimed attempts are published again
	guardRepeat                      // a finite space's points are tried once
	guardSpoiled                     // an attempt that nobody can claim is replaced
	guardEarly                       // also if its claim's place was taken before it was opened
	guardCurve                       // a trial's curve comes from one attempt
	guardRecall                      // a curve that is not in memory is not restarted
	guardOnce                        // a decision to stop a trial early never changes
	guardTold                        // a worker is told of it until the attempt ends
	guardPruned                      // a trial that was told to stop gets no other attempt
)
