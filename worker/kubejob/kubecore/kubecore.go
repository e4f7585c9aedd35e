// Package kubecore reads pods, their logs and events, and finds the resources of kinds. It is a part of
// client-go's clientset, which links the types of every API of Kubernetes.
package kubecore

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Client is a client of a cluster. It is safe for concurrent use.
type Client struct {
	rest   rest.Interface
	encode runtime.ParameterCodec
}

// New returns a Client for the cluster of a configuration.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the types of pods: %w", err)
	}
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &corev1.SchemeGroupVersion, "/api"
	c.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme, serializer.NewCodecFactory(scheme)).WithoutConversion()
	if c.UserAgent == "" {
		c.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return &Client{rest: client, encode: runtime.NewParameterCodec(scheme)}, nil
}

// get begins a request for objects, which come as protobuf.
func (c *Client) get(resource, namespace string, o runtime.Object) *rest.Request {
	return c.rest.Get().UseProtobufAsDefault().Namespace(namespace).Resource(resource).VersionedParams(o, c.encode)
}

// Pod returns a pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	return p, c.get("pods", namespace, &metav1.GetOptions{}).Name(name).Do(ctx).Into(p)
}

// Pods lists pods.
func (c *Client) Pods(ctx context.Context, namespace string, o metav1.ListOptions) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	return list, c.get("pods", namespace, &o).Do(ctx).Into(list)
}

// WatchPods watches pods.
func (c *Client) WatchPods(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.get("pods", namespace, &o).Watch(ctx)
}

// Logs reads the log of a pod.
func (c *Client) Logs(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	return c.rest.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").VersionedParams(o, c.encode).Stream(ctx)
}

// AttachURL returns the address at which a container's standard input is attached.
func (c *Client) AttachURL(namespace, pod, container string) *url.URL {
	return c.rest.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: container, Stdin: true}, c.encode).URL()
}

// Events lists events.
func (c *Client) Events(ctx context.Context, namespace string, o metav1.ListOptions) (*corev1.EventList, error) {
	list := &corev1.EventList{}
	return list, c.get("events", namespace, &o).Do(ctx).Into(list)
}

// Mapping returns the resource of a kind. It asks the cluster each time, so it knows kinds that
// were added since. The error of a kind that the cluster does not have is a
// *meta.NoKindMatchError.
func (c *Client) Mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	missing := &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	path := "/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	list := &metav1.APIResourceList{}
	if err := c.rest.Get().AbsPath(path).Do(ctx).Into(list); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, missing
		}
		return nil, err
	}
	for _, r := range list.APIResources {
		if r.Kind != kind.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		m := &meta.RESTMapping{Resource: kind.GroupVersion().WithResource(r.Name), GroupVersionKind: kind, Scope: meta.RESTScopeRoot}
		if r.Namespaced {
			m.Scope = meta.RESTScopeNamespace
		}
		return m, nil
	}
	return nil, missing
}
