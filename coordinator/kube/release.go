package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// pageSize is the number of resources listed at once.
const pageSize = 500

// Release removes the finalizer of all Study resources of the namespaces (all
// namespaces if none is given), so that they can be deleted when no coordinator runs
// any more. It returns how many had the finalizer. Running coordinators ignore these
// resources from then on; one that starts later manages them again. Studies in the
// ledger are not changed. A cluster without the resource type is not an error. An error in one
// namespace does not stop the others: a namespace that is being deleted may have lost the rights first.
func Release(ctx context.Context, client dynamic.Interface, in []string, now time.Time) (released int, err error) {
	var problems []error
	for _, namespace := range namespaces(in) {
		n, err := releaseAll(ctx, client, namespace, now)
		if released += n; err != nil {
			problems = append(problems, err)
		}
	}
	return released, errors.Join(problems...)
}

// releaseAll removes the finalizer of the resources of a namespace, or of all namespaces if it is
// empty.
func releaseAll(ctx context.Context, client dynamic.Interface, namespace string, now time.Time) (released int, err error) {
	for next, more := "", true; more; more = next != "" {
		list, err := client.Resource(Studies()).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			return released, fmt.Errorf("list the studies of namespace %q: %w", namespace, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			had, err := release(ctx, client, u.GetNamespace(), u.GetName(), now)
			if err != nil {
				return released, fmt.Errorf("release study %s/%s: %w", u.GetNamespace(), u.GetName(), err)
			}
			if had {
				released++
			}
		}
		next = list.GetContinue()
	}
	return released, nil
}

// release removes the finalizer of one resource, and retries if the resource has
// changed in the meantime.
func release(ctx context.Context, client dynamic.Interface, namespace, name string, now time.Time) (had bool, err error) {
	resource := client.Resource(Studies()).Namespace(namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		u, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		r, err := Read(u)
		if err != nil {
			return err
		}
		had = r.hasFinalizer()
		patch, err := r.finalizers(false, map[string]any{ReleasedAnnotation: now.UTC().Format(time.RFC3339Nano)})
		if err != nil {
			return err
		}
		_, err = resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
		return err
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return had, err
}

// finalizers returns a merge patch that adds or removes the finalizer and sets
// annotations (nil removes one). It fails with a conflict if the resource has changed
// since it was read.
func (r *Resource) finalizers(on bool, annotations map[string]any) ([]byte, error) {
	list := slices.DeleteFunc(slices.Clone(r.Finalizers), func(f string) bool { return f == Finalizer })
	if on {
		list = append(list, Finalizer)
	}
	metadata := map[string]any{"uid": r.UID, "resourceVersion": r.Version, "finalizers": list}
	if len(list) == 0 {
		metadata["finalizers"] = nil
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	text, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
	}
	return text, nil
}
