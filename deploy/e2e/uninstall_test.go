//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// objects returns all objects of the namespace, and those of the cluster that belong to
// a release in it, of any kind.
func (c *cluster) objects(ctx context.Context) ([]string, error) {
	client, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	lists, err := c.kube.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	var all []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Kind == "Event" || strings.HasSuffix(gv.Group, "metrics.k8s.io") {
				continue
			}
			get := client.Resource(gv.WithResource(r.Name)).List
			if r.Namespaced {
				get = client.Resource(gv.WithResource(r.Name)).Namespace(c.namespace).List
			}
			found, err := get(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // a kind that was just deleted
			} else if err != nil {
				return nil, fmt.Errorf("list %s: %w", r.Name, err)
			}
			for _, o := range found.Items {
				if r.Namespaced || o.Annotations["meta.helm.sh/release-namespace"] == c.namespace {
					all = append(all, r.Kind+" "+o.Name)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// kept are the objects that an uninstall leaves on purpose, as Helm and Kubernetes do:
// the ledger and the streams.
var kept = []string{"PersistentVolumeClaim data-fantasia-etcd-0", "PersistentVolumeClaim data-fantasia-nats-0"}

// leave watches the pods of a component until none is left, and returns how
// long each outlived its deletion, in seconds' precision, and their grace period.
func (c *cluster) leave(ctx context.Context, component string) (took map[string]time.Duration, grace time.Duration, err error) {
	took, deleted := map[string]time.Duration{}, map[string]time.Time{}
	err = poll(ctx, func(ctx context.Context) error {
		list, err := c.kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
		if err != nil {
			return err
		}
		for name, at := range deleted {
			if !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Name == name }) && took[name] == 0 {
				took[name] = time.Since(at)
			}
		}
		for i := range list.Items {
			p := &list.Items[i]
			grace = time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
			if p.DeletionTimestamp != nil {
				// The timestamp is when the grace period ends.
				deleted[p.Name] = p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
			}
		}
		if len(list.Items) > 0 || len(deleted) == 0 {
			return fmt.Errorf("%d pods of %s are left", len(list.Items), component)
		}
		return nil
	})
	return took, grace, err
}

// testUninstall uninstalls the release while its workers are busy. They end within their
// grace period, and everything else that was not there before is gone, too.
func (c *cluster) testUninstall() {
	c.create(studyFile("left", "default", 8, 2, 60))
	c.busy("left")
	var gone sync.WaitGroup
	defer gone.Wait()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	gone.Go(func() {
		took, grace, err := c.leave(ctx, "worker")
		c.t.Logf("busy workers were gone %v after they were deleted; their grace period is %v", took, grace)
		if err != nil {
			c.t.Error(err)
		}
		for name, after := range took {
			if after > grace {
				c.t.Errorf("%s was gone after %v, want at most its grace period, %v", name, after, grace)
			}
		}
	})
	c.helm("uninstall", release, "--wait", "--timeout", "2m")
	gone.Wait()
	c.await(2*time.Minute, func(ctx context.Context) error {
		all, err := c.objects(ctx)
		if err != nil {
			return err
		}
		var left []string
		for _, o := range all {
			if !slices.Contains(c.before, o) && !slices.Contains(kept, o) {
				left = append(left, o)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("an uninstall leaves %q", left)
		}
		return nil
	})
}
