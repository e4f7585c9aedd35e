package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// orphan is a running study whose resource is not in the cache, by its name in the ledger and its id.
type orphan struct{ name, id string }

// orphans returns the running studies of resources that are not in the cache, of namespaces that were
// listed to the end. Their resources were deleted while nobody led, or the cache is behind.
func (t *term) orphans(all []ledger.Summary) (found []orphan) {
	for i := range all {
		s := &all[i]
		if s.Status.State != study.Running || !t.listed(s.Study.Definition.Metadata.Name) || len(t.resourcesOf(s.Study.ID)) > 0 {
			continue
		}
		found = append(found, orphan{s.Study.Definition.Metadata.Name, s.Study.ID})
	}
	return found
}

// listed reports whether a study belongs to a resource of a namespace that is run, and whose resources are
// all in the cache. A watch that is lost later leaves the cache as it was.
func (t *term) listed(name string) bool {
	namespace, ok := study.Namespace(name)
	if !ok {
		return false
	}
	informer := t.informers[namespace]
	if informer == nil {
		informer = t.informers[""]
	}
	return informer != nil && informer.HasSynced()
}

// stop ends a study whose resource is gone. It deletes nothing: nobody has seen the deletion, and a
// coordinator may have been given the wrong cluster, or one whose resources are about to be restored.
func (t *term) stop(ctx context.Context, o orphan) error {
	namespace, name, _ := strings.Cut(o.name, ".")
	there, err := t.fetch(ctx, namespace, name)
	if err != nil || there != nil && bare(there).ID() == o.id {
		return err
	}
	t.Logger.Warn("stopping a study whose resource was deleted while no coordinator led", telemetry.LogStudy, o.name, "id", o.id)
	err = t.c.Stop(ctx, o.id, fmt.Sprintf("its resource %s in namespace %s was deleted while no coordinator led; to delete the "+
		"study, too: fantasia study delete %s", name, namespace, o.name))
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("stop the study: %w", err)
	}
	return nil
}

// fetch returns a resource as it is now, or nil if there is none. A cache may be behind. It is a list, since
// the answer to get does not tell a missing resource from a missing definition of studies.
func (t *term) fetch(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	list, err := t.Client.Resource(Studies()).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("look for the resource %s in namespace %s: %w", name, namespace, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
