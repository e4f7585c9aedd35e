package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
)

// Action is what is to be done for a resource besides keeping its status.
type Action string

// The actions.
const (
	// Leave does nothing, not even to the status.
	Leave Action = "leave"
	// Show keeps the status.
	Show Action = "show"
	// Hold puts the finalizer on, which changes the resource: nothing is in the
	// ledger that a deletion of the resource would not take out again.
	Hold Action = "hold"
	// Create starts the study.
	Create Action = "create"
	// Update gives the study the changed spec.
	Update Action = "update"
	// Delete deletes the study, if there is one, and takes the finalizer off.
	Delete Action = "delete"
)

// Decision is what is to be done for a resource. Study is what to create, or to
// update by; the verdict is on the resource's spec.
type Decision struct {
	Action  Action
	Study   *study.Study
	Verdict Verdict
}

// Rules are what decisions depend on beside the resource and the ledger.
type Rules struct {
	// Parse reads and checks a study file; its error is a *study.Problems where
	// the file is wrong.
	Parse func(file []byte) (*study.Study, error)
	Pools Pools
	// Began is when this process did.
	Began time.Time
}

// Decide says what to do for a resource whose study the ledger has as known, nil
// if it has none.
func (rules *Rules) Decide(r *Resource, known *ledger.Summary) Decision {
	if r.Deleting {
		if !r.held() && (known == nil || r.released(rules.Began)) {
			return Decision{Action: Leave}
		}
		return Decision{Action: Delete}
	}
	if r.released(rules.Began) {
		return Decision{Action: Leave}
	}
	if known == nil && r.Status.ID == r.ID() {
		return show(ReasonDeleted, "the ledger has no study "+r.Status.ID+": it was deleted there. Delete this resource, and make it again to run the study again")
	}
	if known != nil && !r.held() {
		return Decision{Action: Hold}
	}
	s, err := rules.parse(r)
	if err != nil {
		return show(ReasonInvalid, withOld(known, reasons(err)))
	}
	if err := rules.Pools.Check(r.Namespace, s.Spec.Pool); err != nil {
		return show(ReasonDenied, withOld(known, err.Error()))
	}
	accepted := Verdict{Accepted: true, Reason: ReasonAccepted, Message: "the study runs by this spec"}
	switch {
	case !r.held():
		return Decision{Action: Hold}
	case known == nil:
		return Decision{Action: Create, Study: s, Verdict: accepted}
	case same(&known.Study.Study, s):
		return Decision{Action: Show, Verdict: accepted}
	}
	if differences := study.Compatible(&known.Study.Study, s); len(differences) > 0 {
		return show(ReasonIncompatible, withOld(known, strings.Join(differences, "\n")))
	}
	// Once per change of the resource: a study that was changed through the API
	// stays so until then.
	if r.Status.ObservedGeneration == r.Generation && r.accepted() {
		accepted.Message = "the study was changed through the API since this spec was taken"
		return Decision{Action: Show, Verdict: accepted}
	}
	return Decision{Action: Update, Study: s, Verdict: accepted}
}

// show refuses a spec.
func show(reason, message string) Decision {
	return Decision{Action: Show, Verdict: Verdict{Reason: reason, Message: message}}
}

// accepted reports whether the last verdict was that the study runs by the spec.
func (r *Resource) accepted() bool {
	for _, c := range r.Status.Conditions {
		if c.Type == ConditionAccepted {
			return c.Reason == ReasonAccepted
		}
	}
	return false
}

// withOld adds that a study goes on by the spec that it has.
func withOld(known *ledger.Summary, message string) string {
	if known == nil {
		return message
	}
	return message + "\nThe study goes on by its spec before this change."
}

// parse reads the resource's study, under its name in the ledger.
func (rules *Rules) parse(r *Resource) (*study.Study, error) {
	file, err := r.File()
	if err != nil {
		return nil, err
	}
	s, err := rules.Parse(file)
	if err != nil {
		return nil, err
	}
	s.Metadata.Name = r.StudyName()
	return s, nil
}

// reasons are a study file's problems, each on a line with its field: lines and
// columns are of a text that nobody has seen.
func reasons(err error) string {
	problems, ok := errors.AsType[*study.Problems](err)
	if !ok {
		return err.Error()
	}
	lines := make([]string, len(problems.List))
	for i, p := range problems.List {
		p.Line, p.Column = 0, 0
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// same reports whether two studies are written alike.
func same(a, b *study.Study) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
