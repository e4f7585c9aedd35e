package engine

// safety names a safety check. Builds with the tag mutants can switch off each one,
// to show that the simulator notices. In all other builds every check is on.
type safety uint

const (
	safetyNonce     safety = 1 << iota // messages about an attempt must have its nonce
	safetyTerminal                     // a terminal trial never changes
	safetyBudget                       // created trials stay within the budget
	safetyClaim                        // the first claim wins
	safetyParallel                     // open trials stay within the parallelism
	safetyRetries                      // retries are bounded
	safetyReceipt                      // late results get receipts too
	safetyDuplicate                    // a result is not applied twice
	safetyOutbox                       // unclaimed attempts are published again
	safetyRepeat                       // a finite space's points are tried once
	safetySpoiled                      // an attempt that nobody can claim is replaced
	safetyEarly                        // also if its claim's place was taken before it was opened
	safetyCurve                        // a trial's curve comes from one attempt
	safetyRecall                       // a curve that is not in memory is not restarted
	safetyOnce                         // a decision to stop a trial early never changes
	safetyTold                         // a worker is told of it until the attempt ends
	safetyPromoted                     // a trial is promoted once
	safetyQuantile                     // only the best trials of a rung are promoted
	safetyPruned                       // a trial that was told to stop gets no other attempt
	safetyFinish                       // a trial that a user has continued is not stopped again
	safetySpace                        // an answer made for an earlier space is not used
	safetyTime                         // no trial is begun that is expected to end too late
	safetyCost                         // no trial is begun once the budget of cost is spent or spoken for
	safetyGain                         // a study ends once more trials are not worth it
	safetyOutside                      // the optimiser is told no point outside of the space
)
