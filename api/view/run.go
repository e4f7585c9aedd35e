package view

import (
	"strings"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
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

// Phase is a part of an evaluation in a Job of Kubernetes, such as "start"; the program itself runs in "run".
type Phase struct {
	Phase   string  `json:"phase"`
	Seconds float64 `json:"seconds"`
}

// PhasesOf shows the parts of an evaluation; nil for none.
func PhasesOf(list []messaging.Phase) (phases []Phase) {
	for _, p := range list {
		phases = append(phases, Phase{p.Name, Seconds(p.End.Sub(p.Start))})
	}
	return phases
}

// FromPhases returns the parts of an evaluation as a server sent them.
func FromPhases(list []*fantasiav1.Phase) (phases []messaging.Phase) {
	for _, p := range list {
		phases = append(phases, messaging.Phase{Name: p.GetPhase(), Start: Time(p.GetStartTime()), End: Time(p.GetEndTime())})
	}
	return phases
}

// Ran returns how long the program of the last attempt ran: in a Job without its waiting. It is 0 if it has not ended.
func (t *Trial) Ran() time.Duration {
	if t.Times.Started.IsZero() || t.Times.Ended.IsZero() {
		return 0
	}
	if t.Phases == nil {
		return t.Times.Ended.Sub(t.Times.Started)
	}
	for _, p := range t.Phases {
		if p.Phase == messaging.PhaseRun {
			return time.Duration(p.Seconds * float64(time.Second))
		}
	}
	return 0
}

// fromAttempt shows an attempt as a server sent it.
func fromAttempt(a *fantasiav1.Attempt) Run {
	return Run{
		Number: int(a.GetNumber()), Worker: a.GetWorker(),
		State:  study.AttemptState(strings.ToLower(strings.ReplaceAll(EnumName(a.GetState()), "_", "-"))),
		Opened: Time(a.GetOpenTime()), Claimed: Time(a.GetClaimTime()), Started: Time(a.GetStartTime()), Ended: Time(a.GetEndTime()),
		Reason: failureReason(FromFailure(a.GetFailure())),
	}
}

// ofAttempt shows an attempt as the ledger has it.
func ofAttempt(a record.Attempt) Run {
	return Run{
		Number: a.Number, State: a.State, Worker: a.Worker,
		Opened: a.Opened, Claimed: a.Claimed, Started: a.Started, Ended: a.Ended, Reason: failureReason(a.Failure),
	}
}
