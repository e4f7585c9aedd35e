package view

import (
	"strings"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Run is an attempt at a trial: which worker had it, and when. Times that were not reached
// are zero.
type Run struct {
	Number                          int
	State                           study.AttemptState
	Worker                          string
	Opened, Claimed, Started, Ended time.Time
	// Reason is why it failed, in a few words; "" where nothing went wrong.
	Reason string
}

// fromAttempts shows attempts as a server sent them.
func fromAttempts(list []*fantasiav1.Attempt) []Run {
	runs := make([]Run, len(list))
	for i, a := range list {
		runs[i] = Run{
			Number: int(a.GetNumber()), Worker: a.GetWorker(),
			State:  study.AttemptState(strings.ToLower(strings.ReplaceAll(EnumName(a.GetState()), "_", "-"))),
			Opened: fromTime(a.GetOpenTime()), Claimed: fromTime(a.GetClaimTime()), Started: fromTime(a.GetStartTime()),
			Ended:  fromTime(a.GetEndTime()),
			Reason: failureReason(FromFailure(a.GetFailure())),
		}
	}
	return runs
}

// ofAttempts shows attempts as the ledger has them.
func ofAttempts(list []record.Attempt) []Run {
	runs := make([]Run, len(list))
	for i, a := range list {
		runs[i] = Run{
			Number: a.Number, State: a.State, Worker: a.Worker,
			Opened: a.Opened, Claimed: a.Claimed, Started: a.Started, Ended: a.Ended, Reason: failureReason(a.Failure),
		}
	}
	return runs
}
