//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// testUninstall checks that everything else that was not there before is gone.
func (c *cluster) testUninstall() {
	c.helm("uninstall", release, "--wait", "--timeout", "2m")
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
