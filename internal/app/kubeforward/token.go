package kubeforward

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
