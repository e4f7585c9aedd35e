package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reconcile does what a resource needs now.
func (t *term) reconcile(ctx context.Context, r *Resource) error {
	known, err := t.find(ctx, r.ID())
	if err != nil {
		return err
	}
	if t.meet(ctx, r, known != nil && known.Status.State == study.Running) && r.hasFinalizer() && !r.Deleting {
		if err := t.free(ctx, r); err == nil {
			return nil // the change brings it back
		} else if !apierrors.IsForbidden(err) {
			return err
		}
		t.Logger.Warn("may not take the finalizer of an earlier version off a Study resource", telemetry.LogStudy, r.StudyName())
	}
	d := t.Decide(r, known)
	switch d.Action {
	case Leave:
		return nil
	case Delete:
		return t.remove(ctx, r)
	case Create:
		// A new leader's cache may be behind: the resource may be gone, and another have its name.
		if there, err := t.fetch(ctx, r.Namespace, r.Name); err != nil || there == nil || there.GetUID() != r.UID {
			return err
		}
		if known, err = t.create(ctx, r, d.Study); tooLarge(err) {
			d = show(ReasonInvalid, reasons(err))
		} else if err != nil {
			return err
		}
		if len(t.resourcesOf(r.ID())) == 0 { // it was deleted meanwhile, which found no study yet
			return t.forget(ctx, r.ID())
		}
	case Update:
		err := t.c.Update(ctx, r.ID(), d.Study, 0)
		if errors.Is(err, coordinator.ErrIncompatible) || errors.Is(err, studies.ErrBroken) {
			d.Verdict = Verdict{Reason: ReasonIncompatible, Message: err.Error()}
		} else if tooLarge(err) {
			d = show(ReasonInvalid, withOld(known, reasons(err)))
		} else if err != nil {
			return fmt.Errorf("update the study: %w", err)
		}
		if known, err = t.find(ctx, r.ID()); err != nil {
			return err
		}
	}
	return t.show(ctx, r, d.Verdict, known)
}

// tooLarge reports whether the ledger refuses the study, although its file is valid.
func tooLarge(err error) bool {
	_, ok := errors.AsType[*study.Problems](err)
	return ok
}

// find returns the study with an id, or nil, to be shown.
func (t *term) find(ctx context.Context, id string) (*ledger.Summary, error) {
	found, err := t.c.Summaries(ctx, id)
	if err != nil {
		return nil, err
	}
	var known *ledger.Summary
	if len(found) > 0 {
		known = &found[0]
	}
	t.note(id, known)
	return known, nil
}

// create starts the study of a resource.
func (t *term) create(ctx context.Context, r *Resource, s *study.Study) (*ledger.Summary, error) {
	_, err := t.c.CreateWithID(ctx, r.ID(), s)
	if errors.Is(err, ledger.ErrNameTaken) {
		// Only resources have such names. This is the study of an earlier resource, which is gone
		// as another has its name.
		t.Logger.Warn("replacing the study of an earlier resource", telemetry.LogStudy, r.StudyName())
		if err = t.forget(ctx, r.StudyName()); err == nil {
			_, err = t.c.CreateWithID(ctx, r.ID(), s)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create the study: %w", err)
	}
	return t.find(ctx, r.ID())
}

// forget stops and deletes a study; a missing study is not an error.
func (t *term) forget(ctx context.Context, nameOrID string) error {
	if err := t.c.Delete(ctx, nameOrID, true); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("delete the study: %w", err)
	}
	t.note(nameOrID, nil)
	return nil
}

// remove deletes the study of a resource that is being deleted, and takes off the finalizer of an earlier
// version. Without the right to do so, as in a namespace that is being deleted, the resource says that it stays.
func (t *term) remove(ctx context.Context, r *Resource) error {
	if err := t.forget(ctx, r.ID()); err != nil || !r.hasFinalizer() {
		return err
	}
	err := t.free(ctx, r)
	if apierrors.IsForbidden(err) {
		stays := fmt.Sprintf("the study is deleted, but the coordinator may not take the finalizer %s off this resource, which an "+
			"earlier version has put there: %v", Finalizer, err)
		return errors.Join(err, t.apply(ctx, r, r.next(Verdict{Reason: ReasonDeleted, Message: stays}, view{home: t.Home}, time.Now())))
	}
	return err
}

// free takes off the finalizer of an earlier version.
func (t *term) free(ctx context.Context, r *Resource) error {
	metadata := map[string]any{"uid": r.UID, "resourceVersion": r.Version, "finalizers": nil}
	if left := slices.DeleteFunc(slices.Clone(r.Finalizers), func(f string) bool { return f == Finalizer }); len(left) > 0 {
		metadata["finalizers"] = left
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err == nil {
		_, err = t.send(ctx, r, types.MergePatchType, patch)
	}
	return err
}

// show writes the status of a resource if it has changed. If a study has ended and the
// ledger has no recommendation based on all its trials, it is computed after the status
// says that the study has ended. That takes a while, changes the resource, and so
// brings it back.
func (t *term) show(ctx context.Context, r *Resource, v Verdict, known *ledger.Summary) error {
	if known == nil {
		return t.apply(ctx, r, r.next(v, view{home: t.Home}, time.Now()))
	}
	shown := view{home: t.Home, id: known.Study.ID, status: &known.Status, stall: t.stall(known)}
	if best := known.Status.Best; best != 0 && (r.Status.Best == nil || r.Status.Best.Trial != best) {
		trial, err := t.Ledger.Trial(ctx, known.Study.ID, best)
		if err != nil {
			return err
		}
		shown.best = &trial
	}
	if err := t.recommended(ctx, r, known, &shown); err != nil {
		return err
	}
	next := r.next(v, shown, time.Now())
	if !next.State.Terminal() || next.Recommended != nil || next.Best == nil && next.Front == nil || !r.Status.State.Terminal() {
		return t.apply(ctx, r, next)
	}
	var err error
	if shown.recommended, err = t.c.Recommend(ctx, *known); err != nil {
		return err
	}
	return t.apply(ctx, r, r.next(v, shown, time.Now()))
}

// recommended adds the ledger's recommendation to what is shown if it is based on all
// trials, or if the study is running. Of a recommended front a resource has only the trials.
func (t *term) recommended(ctx context.Context, r *Resource, known *ledger.Summary, shown *view) error {
	stored := known.Status.Recommended
	if stored.Trial == 0 || known.Status.State.Terminal() && !known.Status.RecommendedOfAll() {
		return nil
	}
	if was := r.Status.Recommended; was != nil && was.Trial == stored.Trial {
		shown.recommended = stored.At(was.Parameters)
		return nil
	}
	trial, err := t.Ledger.Trial(ctx, known.Study.ID, stored.Trial)
	if err != nil {
		return err
	}
	shown.recommended = stored.At(trial.Point)
	return nil
}

// apply writes a status. If the resource has changed in the meantime, for example by an
// earlier leader, it fails with a conflict, and the change brings the resource back.
// It is no server-side apply, which fails as a whole if the cluster's definition of
// studies is older than this program and lacks a field.
func (t *term) apply(ctx context.Context, r *Resource, next Status) error {
	was, errWas := json.Marshal(r.Status)
	is, errIs := json.Marshal(next)
	if err := errors.Join(errWas, errIs); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	if bytes.Equal(was, is) {
		return nil
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	patch, err := json.Marshal([]operation{
		{"replace", "/metadata/uid", r.UID}, {"replace", "/metadata/resourceVersion", r.Version}, {"add", "/status", next},
	})
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	applied, err := t.send(ctx, r, types.JSONPatchType, patch, "status")
	if applied {
		t.record(ctx, r, r.events(&next))
	}
	return err
}

// send sends a patch and reports whether it was applied. A resource that is gone or has
// changed since it was read is queued again by its change.
func (t *term) send(ctx context.Context, r *Resource, kind types.PatchType, patch []byte, subresources ...string) (applied bool,
	err error) {
	options := metav1.PatchOptions{FieldManager: manager}
	_, err = t.Client.Resource(Studies()).Namespace(r.Namespace).Patch(ctx, r.Name, kind, patch, options, subresources...)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("patch the resource: %w", err)
	}
	return err == nil, nil
}
