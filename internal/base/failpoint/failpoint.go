// Package failpoint marks the places in the programs at which tests let them die, wait or
// run out of disk. Only builds with the tag failpoints act on the marks: in all others each
// function is empty, and the compiler removes its calls.
//
// In such a build, FANTASIA_FAILPOINTS holds rules, with semicolons between them:
//
//	leader-after-commit=kill@3   the process kills itself when it gets there the third time
//	spool-write=enospc           each time, the caller is told that the disk is full
//	spool-write=sleep(2s)@1      the first time, the process waits there
//	trim-every=set(1s)           a time that is shorter than usual
//	@/path/of/a/file             a file with more rules, read again at each mark
//
// Rules of a file count from when the process first saw them. If one with a number is due,
// the process first removes the file, and acts only if it was still there. So several
// processes can share a file: one of them acts, once, and whoever wrote the file sees that
// it is gone.
//
// gofail (go.etcd.io/gofail) and github.com/pingcap/failpoint do the same, but both rewrite
// the sources before a build. Here a mark is a call, and a build needs nothing but a tag.
package failpoint

// Point is a marked place.
type Point string

// The points of a leader: its commits to etcd, what it publishes, and its answers to callers.
const (
	LeaderBeforeCommit  Point = "leader-before-commit"
	LeaderAfterCommit   Point = "leader-after-commit"
	LeaderBeforePublish Point = "leader-before-publish"
	LeaderAfterPublish  Point = "leader-after-publish"
	LeaderBeforeReceipt Point = "leader-before-receipt"
	LeaderAfterReceipt  Point = "leader-after-receipt"
	// CallBeforeCommit and CallAfterCommit are reached only by commits for which a caller
	// of the API waits: after the second it has no answer yet.
	CallBeforeCommit Point = "call-before-commit"
	CallAfterCommit  Point = "call-after-commit"
	// TrimResults and TrimClaims follow the deletion of messages that nobody needs. TrimEvery
	// and TrimAfter are the times of a trimmer.
	TrimResults Point = "trim-results"
	TrimClaims  Point = "trim-claims"
	TrimEvery   Point = "trim-every"
	TrimAfter   Point = "trim-after"
)

// The points of a takeover, in their order: the lease is held, the ledger is fenced, NATS is
// fenced, the ledger is loaded, and the streams are read up to the fence.
const (
	TakeoverElected      Point = "takeover-elected"
	TakeoverLedgerFenced Point = "takeover-ledger-fenced"
	TakeoverFenced       Point = "takeover-fenced"
	TakeoverLoaded       Point = "takeover-loaded"
	TakeoverDrained      Point = "takeover-drained"
)

// The points of a worker, in their order. The claim is noted on disk after NATS has it.
const (
	WorkerBeforeClaim   Point = "worker-before-claim"
	WorkerAfterClaim    Point = "worker-after-claim"
	WorkerBeforeAck     Point = "worker-before-ack"
	WorkerAfterAck      Point = "worker-after-ack"
	WorkerBeforeSpool   Point = "worker-before-spool"
	WorkerSpooling      Point = "worker-spooling" // the file is written, and has no name yet
	WorkerAfterSpool    Point = "worker-after-spool"
	WorkerBeforePublish Point = "worker-before-publish"
	WorkerAfterPublish  Point = "worker-after-publish"
	WorkerBeforeRemove  Point = "worker-before-remove" // it has the receipt
	WorkerAfterRemove   Point = "worker-after-remove"
	// SpoolWrite is reached before a result is written to disk, and SpoolProbe when a worker
	// tries whether its disk has space. Both can fail.
	SpoolWrite Point = "spool-write"
	SpoolProbe Point = "spool-probe"
	// TrialFiles is reached before the files of an attempt are made, and can fail.
	TrialFiles Point = "trial-files"
)

// All returns all points.
func All() []Point {
	return []Point{
		LeaderBeforeCommit, LeaderAfterCommit, LeaderBeforePublish, LeaderAfterPublish, LeaderBeforeReceipt, LeaderAfterReceipt,
		CallBeforeCommit, CallAfterCommit, TrimResults, TrimClaims, TrimEvery, TrimAfter,
		TakeoverElected, TakeoverLedgerFenced, TakeoverFenced, TakeoverLoaded, TakeoverDrained,
		WorkerBeforeClaim, WorkerAfterClaim, WorkerBeforeAck, WorkerAfterAck, WorkerBeforeSpool, WorkerSpooling, WorkerAfterSpool,
		WorkerBeforePublish, WorkerAfterPublish, WorkerBeforeRemove, WorkerAfterRemove, SpoolWrite, SpoolProbe, TrialFiles,
	}
}
