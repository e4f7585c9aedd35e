package kubejob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// callTimeout limits one call of the cluster's API.
	callTimeout = 15 * time.Second
	// minPause and maxPause limit the pauses between failed tries.
	minPause = 500 * time.Millisecond
	maxPause = 15 * time.Second
	// quotaCounts is how long a quota may still count what was deleted. Another one is not deleted meanwhile.
	quotaCounts = 5 * time.Second
	// maxOwners is the number of owners that are remembered.
	maxOwners = 1000
)

// errRefused means that the cluster will never accept a resource.
var errRefused = errors.New("the cluster refuses the resource")

// errSilent means that the cluster's API has not answered for a long time.
var errSilent = errors.New("the cluster's API does not answer")

// ensure creates the attempt's resource unless it exists. It retries until ctx ends or
// the start timeout has passed, and says what it waits for. If a quota on the number of resources
// refuses it, ended ones are deleted.
func (s *site) ensure(ctx context.Context, object *unstructured.Unstructured, a *messaging.Assignment, say func(cause string)) error {
	deadline, pause := time.Now().Add(s.options.StartTimeout), backoff.New(minPause, maxPause)
	var deleted time.Time
	for {
		err := s.create(ctx, object, a)
		if err == nil || errors.Is(err, errRefused) || ctx.Err() != nil {
			return err
		}
		if isQuota(err) && time.Since(deleted) > quotaCounts && s.deleteOldestEnded(ctx, object) {
			deleted = time.Now()
		}
		say(fmt.Sprintf("%s %s cannot be created: %v", s.kind.Kind, object.GetName(), err))
		if time.Now().After(deadline) {
			if isQuota(err) || lacksRights(err) {
				return fmt.Errorf("%w: %w", errRefused, err)
			}
			return fmt.Errorf("%w: %w", errSilent, err)
		}
		s.options.Logger.Warn("cannot create a resource; retrying", telemetry.LogStudy, a.StudyName, "name", object.GetName(),
			telemetry.LogError, err)
		pause.Wait(ctx)
	}
}

// isQuota reports whether a quota that may admit later refuses a resource.
func isQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") && !unmendable(err.Error())
}

// lacksRights reports whether a role does not permit a call. The role may be bound later, as in a namespace
// that is newer than the release. Admission's refusals, which are Forbidden too, do not name a user first.
func lacksRights(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), `is forbidden: User "`)
}

// deleteOldestEnded deletes the oldest Job of the installation in the namespace that has ended, of any study, so that
// object can be created. A failed one comes last, as somebody may want to look at it. It reports whether it has.
func (s *site) deleteOldestEnded(ctx context.Context, object *unstructured.Unstructured) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	jobs := s
	if other := s.teams[team{s.namespace, ""}]; other != nil { // other kinds are deleted when they end
		jobs = other
	}
	list, err := jobs.client.List(ctx, metav1.ListOptions{LabelSelector: LabelConcluded + "=true"})
	if err != nil {
		s.options.Logger.Warn("cannot list ended resources so that another can be created", telemetry.LogError, err)
		return false
	}
	ended := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !s.replaceable(&o, object) })
	if len(ended) == 0 {
		return false
	}
	first := slices.MinFunc(ended, func(a, b unstructured.Unstructured) int {
		if x, y := jobs.failure.Holds(a.Object), jobs.failure.Holds(b.Object); x != y {
			return map[bool]int{true: 1, false: -1}[x]
		}
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	if err := jobs.remove(ctx, first.GetName(), metav1.DeletePropagationBackground); err != nil {
		s.options.Logger.Warn("cannot delete an ended resource so that another can be created", "name", first.GetName(), telemetry.LogError, err)
		return false
	}
	s.options.Logger.Info("deleted an ended resource, since a quota refused another", telemetry.LogStudy, first.GetLabels()[LabelStudy],
		"name", first.GetName())
	return true
}

// replaceable reports whether a concluded Job may be deleted so that object can be created. The log and the reason of a
// failed one must be with the leader. A team's namespace belongs to one installation; elsewhere, those of the same
// pool and owner count.
func (s *site) replaceable(ended, object *unstructured.Unstructured) bool {
	its, mine := ended.GetLabels(), object.GetLabels()
	if ended.GetDeletionTimestamp() != nil || s.failure.Holds(ended.Object) && its[LabelStored] != "true" {
		return false
	}
	owner := func(o *unstructured.Unstructured) (uids []types.UID) {
		for _, ref := range o.GetOwnerReferences() {
			uids = append(uids, ref.UID)
		}
		return uids
	}
	return s.ownedBy == studyOwner || its[LabelPool] == mine[LabelPool] && slices.Equal(owner(ended), owner(object))
}

func (s *site) create(ctx context.Context, object *unstructured.Unstructured, a *messaging.Assignment) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	owner, err := s.owner(ctx, a)
	if err != nil {
		return err
	}
	if owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	_, err = s.client.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.adopt(ctx, object)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsForbidden(err) && !isQuota(err) && !lacksRights(err):
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// fieldManager identifies this package's writes.
const fieldManager = "fantasia-worker"

// adopt takes over an existing resource: an earlier process of this worker created it,
// or a try of this one whose answer was lost.
func (s *site) adopt(ctx context.Context, object *unstructured.Unstructured) error {
	there, err := s.client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err // it may have been deleted since: the next try creates it
	}
	mine, its := object.GetLabels(), there.GetLabels()
	for _, name := range []string{LabelNonce, LabelWorker} {
		if mine[name] != its[name] {
			return fmt.Errorf("%w: %s exists, with label %s %q, must be %q", errRefused, object.GetName(), name, its[name], mine[name])
		}
	}
	if there.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s exists, and is being deleted", object.GetName())
	}
	return nil
}

// exists reports whether the attempt's resource exists.
func (s *site) exists(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// warning returns the cluster's latest warning about a resource, or an empty string if
// there is none or the worker may not read it.
func (s *site) warning(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := s.options.Core.Events(ctx, s.namespace, metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.name=" + name,
	})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	newest := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return newest.Reason + ": " + newest.Message
}

// overStorage says which of its own limits of storage ended a pod that succeeded all the same, because its program exits
// with 0 when it is told to end. Only an event tells that from a program that was done. Empty if there was none, or if
// the worker may not read events.
func (s *site) overStorage(ctx context.Context, pods []*corev1.Pod) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded || !limitsStorage(p) {
			continue
		}
		list, err := s.options.Core.Events(ctx, s.namespace, metav1.ListOptions{
			FieldSelector: "reason=" + evictedReason + ",involvedObject.uid=" + string(p.UID),
		})
		if err == nil && len(list.Items) > 0 {
			return list.Items[0].Message
		}
	}
	return ""
}

// remove deletes a resource; a missing resource is not an error.
func (s *site) remove(ctx context.Context, name string, how metav1.DeletionPropagation) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &how})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// mark labels a resource, if it exists.
func (s *site) mark(ctx context.Context, name, label string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, label)
	_, err := s.client.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// owner returns the reference to the attempt's owner, or nil.
func (s *site) owner(ctx context.Context, a *messaging.Assignment) (*metav1.OwnerReference, error) {
	if s.ownedBy == "" {
		return nil, nil
	}
	texts := []string{s.ownedBy}
	x, err := study.NewExpander(texts, a.ParameterOrder, a.Parameters, words(evaluation.Task{Assignment: a}))
	if err != nil {
		return nil, fmt.Errorf("%w: owner: %w", errRefused, err)
	}
	expanded, err := x.Expand(texts[0])
	if err != nil {
		return nil, fmt.Errorf("%w: owner %q: %w", errRefused, texts[0], err)
	}
	if len(expanded) != 1 {
		return nil, fmt.Errorf("%w: owner %q stands for %d texts, must be one", errRefused, texts[0], len(expanded))
	}
	// A study recreated under its name has another owner.
	key := a.Study + "/" + expanded[0]
	s.mu.Lock()
	known, ok := s.owners[key]
	s.mu.Unlock()
	if ok {
		return &known, nil
	}
	found, err := s.findOwner(ctx, expanded[0])
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners) >= maxOwners {
		clear(s.owners)
	}
	s.owners[key] = *found
	return found, nil
}

// findOwner fetches an owner given as TYPE.VERSION.GROUP/NAME.
func (s *site) findOwner(ctx context.Context, text string) (*metav1.OwnerReference, error) {
	kind, name, ok := strings.Cut(text, "/")
	resource, _ := schema.ParseResourceArg(kind)
	if !ok || resource == nil {
		return nil, fmt.Errorf("%w: owner %q, must be TYPE.VERSION.GROUP/NAME, such as deployments.v1.apps/fantasia-pool", errRefused, text)
	}
	object, err := s.options.Client.Resource(*resource).Namespace(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: owner %s: %w", errRefused, text, err)
	}
	if err != nil {
		return nil, fmt.Errorf("owner %s: %w", text, err)
	}
	return &metav1.OwnerReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(),
	}, nil
}
