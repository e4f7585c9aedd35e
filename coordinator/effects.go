package coordinator

import (
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// effects are the actions to take once the records that caused them are durable.
// The exception are burials, which are made BEFORE.
type effects struct {
	publish  []outgoing
	withdraw []*messaging.Assignment
	controls []messaging.Control
	purge    []string // studies by id
	burials  []burial
	ended    []endedTrial
	asks     []askOf
	// fallbacks are requests for points that need no model.
	fallbacks []askOf
	// republished is how many assignments in publish were published before.
	republished int64
	// committed is when the records became durable.
	committed time.Time
}

type endedTrial struct {
	run   *run
	trial record.Trial
}

// burial is a result for the dead-letter queue, and the attempt and the worker that it
// names.
type burial struct {
	deadLetter
	worker string
	id     messaging.AttemptID
}

type askOf struct {
	run *run
	ask *engine.Ask
}

// takeEffects adds an output's effects, except for the results to bury.
func (e *effects) takeEffects(r *run, out *engine.Output) {
	for _, a := range out.Publish {
		e.publish = append(e.publish, outgoing{Assignment: a})
		// The record of a trial whose attempt is new is in the same output.
		if !slices.ContainsFunc(out.Trials, func(t record.Trial) bool { return t.Number == a.Trial }) {
			e.republished++
		}
	}
	e.withdraw = append(e.withdraw, out.Withdraw...)
	for _, c := range out.Cancels {
		kind := messaging.ControlCancel
		if c.Prune {
			kind = messaging.ControlPrune
		}
		e.controls = append(e.controls, messaging.Control{Kind: kind, Worker: c.Worker, AttemptID: c.Attempt, Reason: c.Reason})
	}
	for _, a := range out.Avoids {
		e.controls = append(e.controls, avoid(a.Worker, r.spec.ID, a.Reason))
	}
	for _, p := range out.Receipts {
		e.controls = append(e.controls, receipt(p.Worker, p.Attempt, p.Disposition))
	}
	for _, t := range out.Ended {
		e.ended = append(e.ended, endedTrial{r, t})
	}
	if out.Ask != nil {
		e.asks = append(e.asks, askOf{r, out.Ask})
	}
	if out.Fallback != nil {
		e.fallbacks = append(e.fallbacks, askOf{r, out.Fallback})
	}
}

// withhold drops the receipts of a result that could not be buried: its worker keeps it
// and sends it again.
func (e *effects) withhold(worker string, id messaging.AttemptID) {
	e.controls = slices.DeleteFunc(e.controls, func(c messaging.Control) bool {
		return c.Kind == messaging.ControlReceipt && c.Worker == worker && c.AttemptID == id
	})
}

func receipt(worker string, id messaging.AttemptID, d messaging.Disposition) messaging.Control {
	return messaging.Control{Kind: messaging.ControlReceipt, Worker: worker, AttemptID: id, Disposition: d}
}

func avoid(worker, study, reason string) messaging.Control {
	return messaging.Control{Kind: messaging.ControlAvoid, Worker: worker, AttemptID: messaging.AttemptID{Study: study}, Reason: reason}
}
