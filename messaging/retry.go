package messaging

import "time"

// The pauses between tries of what the broker has not answered, on either side of it: the first is at
// most RetryFirst, and each is twice as long as the one before, up to RetryMost. It is the only such
// policy, but for what the leader publishes (coordinator/publish/retry.go):
//
//   - A worker fetches assignments and publishes a measurement until the broker takes them. It claims
//     an attempt with one message id, for at most the minute in which JetStream recognises a
//     repeated one.
//   - A worker publishes a result until the broker takes it, and then again, after longer and longer
//     pauses, until it gets the leader's receipt: what the broker took can be lost with its disk. A
//     result is on the worker's disk meanwhile.
//   - The leader reads on from its cursor, which is durable, so that it misses nothing.
//
// What is tried again MUST be safe to repeat: the broker may have taken a message whose
// acknowledgement was lost.
const (
	// RetryFirst lets a broker that has just restarted answer the second try.
	RetryFirst = 100 * time.Millisecond
	// RetryMost is how much later than the broker everybody is there again after an outage.
	RetryMost = 2 * time.Second
)
