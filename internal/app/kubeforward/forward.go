package kubeforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// forward forwards a local port to a pod's until done is called.
func forward(ctx context.Context, config *rest.Config, namespace string, pod target) (url string, done func(), err error) {
	dialer, err := dialerOf(config, namespace, pod.name)
	if err != nil {
		return "", nil, fmt.Errorf("reach the cluster: %w", err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard())) // a broken connection shows in the call that used it
	opened := make(chan struct{})
	f, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", pod.number)},
		opened, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return "", nil, fmt.Errorf("forward to pod %s: %w", pod.name, err)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = f.ForwardPorts()
	}()
	done = func() {
		cancel()
		<-ended
	}
	select {
	case <-ended:
		cancel()
		return "", nil, advise(fmt.Errorf("forward to pod %s of namespace %s: %w", pod.name, namespace, errors.Join(failed, ctx.Err())))
	case <-opened:
	}
	ports, err := f.GetPorts()
	if err != nil {
		done()
		return "", nil, fmt.Errorf("forward to pod %s: %w", pod.name, err)
	}
	return pod.url(ports[0].Local), done, nil
}

// dialerOf returns what opens the streams to a pod. Like kubectl, it uses SPDY where a proxy or an older
// API server refuses websockets.
func dialerOf(config *rest.Config, namespace, pod string) (httpstream.Dialer, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	address := base.JoinPath("api", "v1", "namespaces", namespace, "pods", pod, "portforward")
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	return portforward.NewFallbackDialerForStreaming(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// tokenLife is for how long a token of the cluster is requested; the cluster may shorten it.
const tokenLife = time.Hour

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// Token requests a token of the service account from the cluster, as kubectl create token does.
// The caller needs no other right in the cluster than to create serviceaccounts/token of this
// account.
func (c *Cluster) Token(ctx context.Context) (string, error) {
	_, namespace, err := c.Load()
	if err != nil {
		return "", err
	}
	client, err := c.client()
	if err != nil {
		return "", err
	}
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": c.Account},
		"spec": map[string]any{"audiences": []any{c.Audience}, "expirationSeconds": int64(tokenLife / time.Second)},
	}}
	made, err := client.Resource(serviceAccounts).Namespace(namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("request a token of service account %s/%s: %w", namespace, c.Account, err)
	}
	token, _, err := unstructured.NestedString(made.Object, "status", "token")
	if err == nil && token == "" {
		err = errors.New("the answer has none")
	}
	if err != nil {
		return "", fmt.Errorf("request a token of service account %s/%s: %w", namespace, c.Account, err)
	}
	return token, nil
}
