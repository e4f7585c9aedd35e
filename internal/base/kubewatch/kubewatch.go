// Package kubewatch watches resources of a Kubernetes cluster. It does what client-go's
// dynamicinformer does, which links the types of every API of Kubernetes.
package kubewatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Resources returns an informer of the resources in a namespace, or in all if it is empty. labels
// selects some of them; empty selects all. The objects are *unstructured.Unstructured.
func Resources(client dynamic.Interface, resource schema.GroupVersionResource, namespace, labels string,
	indexers cache.Indexers) cache.SharedIndexInformer {
	in := client.Resource(resource).Namespace(namespace)
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return in.List(ctx, o) }
	return Informer(client, list, in.Watch, &unstructured.Unstructured{}, resource.String(), labels, indexers)
}

// Informer returns an informer of the objects that list and watch return, which are of the type
// of example. client tells whether the server can stream lists; description names the objects in
// logs.
func Informer(client any, list cache.ListWithContextFunc, watching cache.WatchFuncWithContext, example runtime.Object, description,
	labels string, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = labels
				return list(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = labels
				return watching(ctx, o)
			},
		}, client),
		example, cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: description},
	)
}
