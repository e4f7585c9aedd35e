package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

// Action is what to do for a resource besides updating its status.
type Action string

// The actions.
const (
	// Leave does nothing, not even to the status.
	Leave Action = "leave"
	// Show only updates the status.
	Show Action = "show"
	// Create starts the study.
	Create Action = "create"
	// Update changes the study to the new spec.
	Update Action = "update"
	// Delete deletes the study, if it exists, and removes the finalizer of an earlier version.
	Delete Action = "delete"
)

// Decision is what to do for a resource. Study is the study to create or to update to;
// the verdict is about the resource's spec.
type Decision struct {
	Action  Action
	Study   *study.Study
	Verdict Verdict
}

// Rules are the inputs of decisions besides the resource and the ledger.
type Rules struct {
	// Parse parses and checks a study file; its error is a *study.Problems if the file
	// is wrong.
	Parse func(file []byte) (*study.Study, error)
	Pools Pools
	// Jobs say which templates of Jobs the studies of each namespace may bring.
	Jobs jobpolicy.Policies
	// Began is the time at which this process started.
	Began time.Time
}

// Decide returns what to do for a resource whose study is known to the ledger, or nil
// if it has none.
func (rules *Rules) Decide(r *Resource, known *ledger.Summary) Decision {
	if r.Deleting {
		if !r.hasFinalizer() && known == nil {
			return Decision{Action: Leave}
		}
		return Decision{Action: Delete}
	}
	if known == nil && r.Status.ID == r.ID() {
		return show(ReasonDeleted, "study "+r.Status.ID+" is not in the ledger any more: it was deleted there, or a backup without it was "+
			"restored. To run it again, delete this resource and create it again")
	}
	s, err := rules.parse(r)
	if err != nil {
		return show(ReasonInvalid, withOld(known, reasons(err)))
	}
	if err := rules.Pools.Check(r.Namespace, s.Spec.Pool); err != nil {
		return show(ReasonDenied, withOld(known, err.Error()))
	}
	if j := s.Spec.Trial.Job; j != nil {
		if err := rules.Jobs.Check(r.Namespace, j); err != nil {
			return show(ReasonDenied, withOld(known, reasons(err)))
		}
	}
	if known != nil {
		s.Spec.Recall(&known.Study.Definition.Spec)
	}
	if known != nil && s.Spec.Attributes == nil { // what programs have noted stays
		s.Spec.Attributes = known.Study.Definition.Spec.Attributes
	}
	accepted := Verdict{Accepted: true, Reason: ReasonAccepted, Message: "the study runs with this spec"}
	switch {
	case known == nil:
		return Decision{Action: Create, Study: s, Verdict: accepted}
	case same(&known.Study.Definition, s):
		return Decision{Action: Show, Verdict: accepted}
	}
	if differences := study.Compatible(&known.Study.Definition, s); len(differences) > 0 {
		return show(ReasonIncompatible, withOld(known, strings.Join(differences, "\n")))
	}
	relabelled := known.Study.Definition
	relabelled.Metadata.Labels = s.Metadata.Labels
	if same(&relabelled, s) { // labels belong to no generation of the resource
		return Decision{Action: Update, Study: s, Verdict: accepted}
	}
	// The spec is applied once per change of the resource: until then, a study that was
	// changed through the API stays as it is.
	if r.Status.ObservedGeneration == r.Generation && r.accepted() {
		accepted.Message = "the study was changed through the API after this spec was applied"
		return Decision{Action: Show, Verdict: accepted}
	}
	return Decision{Action: Update, Study: s, Verdict: accepted}
}

// show refuses a spec.
func show(reason, message string) Decision {
	return Decision{Action: Show, Verdict: Verdict{Reason: reason, Message: message}}
}

// accepted reports whether the last verdict was that the study runs with the spec.
func (r *Resource) accepted() bool {
	for _, c := range r.Status.Conditions {
		if c.Type == ConditionAccepted {
			return c.Reason == ReasonAccepted
		}
	}
	return false
}

// withOld adds that a study continues with its previous spec.
func withOld(known *ledger.Summary, message string) string {
	if known == nil {
		return message
	}
	return message + "\nThe study continues with its previous spec."
}

// parse returns the resource's study, under its name in the ledger.
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
	for i := range s.Spec.LearnFrom { // it learns from studies of its own namespace
		if from := &s.Spec.LearnFrom[i]; from.Trials == nil {
			from.Study = r.Namespace + "." + from.Study
		}
	}
	return s, nil
}

// reasons returns a study file's problems, one a line, with their fields but without
// lines and columns: those belong to a text that nobody has seen.
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
