package publish

import (
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// Messages are what the broker and the workers are told once the records that say so are durable.
// The zero Messages are none. They are values without side effects: the loop collects them in the commit
// group, which can still take a receipt back (Withhold), and hands them to the Publisher after the commit.
type Messages struct {
	Assignments []Assignment
	Withdrawn   []*messaging.Assignment
	Controls    []messaging.Control
	Purged      []string // ids of studies whose messages are deleted
	// Republished is how many of the assignments were published before.
	Republished int64
}

// Assignment is an assignment and the time when the ledger had it.
type Assignment struct {
	*messaging.Assignment
	committed time.Time // zero until Publisher.Add sets it
}

// AddOutput adds what an engine's output says about a study. It leaves out the results to bury, which must be
// buried BEFORE the commit, and not after it as these messages.
func (m *Messages) AddOutput(study string, out *engine.Output) {
	for _, a := range out.Publish {
		m.Assignments = append(m.Assignments, Assignment{Assignment: a})
		// The record of a trial whose attempt is new is in the same output.
		if !slices.ContainsFunc(out.Trials, func(t record.Trial) bool { return t.Number == a.Trial }) {
			m.Republished++
		}
	}
	m.Withdrawn = append(m.Withdrawn, out.Withdraw...)
	for _, c := range out.Cancels {
		kind := messaging.ControlCancel
		if c.Prune {
			kind = messaging.ControlPrune
		}
		m.Controls = append(m.Controls, messaging.Control{Kind: kind, Worker: c.Worker, AttemptID: c.Attempt, Reason: c.Reason})
	}
	for _, a := range out.Avoids {
		m.Avoid(a.Worker, study, a.Reason)
	}
	for _, p := range out.Receipts {
		m.Receipt(p.Worker, p.Attempt, p.Disposition)
	}
}

// Receipt tells a worker what became of a result.
func (m *Messages) Receipt(worker string, id messaging.AttemptID, d messaging.Disposition) {
	m.Controls = append(m.Controls, messaging.Control{Kind: messaging.ControlReceipt, Worker: worker, AttemptID: id, Disposition: d})
}

// Withhold drops the receipts of a result that could not be buried: its worker keeps it
// and sends it again. With a receipt, the only copy would be gone.
func (m *Messages) Withhold(worker string, id messaging.AttemptID) {
	m.Controls = slices.DeleteFunc(m.Controls, func(c messaging.Control) bool {
		return c.Kind == messaging.ControlReceipt && c.Worker == worker && c.AttemptID == id
	})
}

// Cancel tells a worker that an attempt's result is no longer wanted. An attempt that the leader has claimed
// itself, to withdraw it, has no worker to tell.
func (m *Messages) Cancel(worker string, id messaging.AttemptID, reason string) {
	if worker == messaging.LeaderName {
		return
	}
	m.Controls = append(m.Controls, messaging.Control{Kind: messaging.ControlCancel, Worker: worker, AttemptID: id, Reason: reason})
}

// Avoid tells a worker to take no more attempts of a study. The worker knows it only as long as its process
// lives, so it is told again when a new one begins: see incoming.Heartbeats.
func (m *Messages) Avoid(worker, study, reason string) {
	every := messaging.AttemptID{Study: study}
	m.Controls = append(m.Controls, messaging.Control{Kind: messaging.ControlAvoid, Worker: worker, AttemptID: every, Reason: reason})
}
