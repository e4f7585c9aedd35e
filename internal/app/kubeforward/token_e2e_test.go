//go:build e2e

package kubeforward_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fantasia-hpo/fantasia/internal/app/kubeforward"
)

// TestTokenWithLeastRights requests a token as docs/operate/studies-on-kubernetes.md describes it:
// the caller may create tokens of one service account and nothing else.
func TestTokenWithLeastRights(t *testing.T) {
	path := os.Getenv("KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fantasia-token-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	named := metav1.ObjectMeta{Name: "tuning-token"}
	for _, create := range []func() error{
		func() error {
			_, err := kube.CoreV1().ServiceAccounts(ns.Name).Create(t.Context(),
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "tuning"}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := kube.RbacV1().Roles(ns.Name).Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"tuning"}, Verbs: []string{"create"}},
			}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := kube.RbacV1().RoleBindings(ns.Name).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice@" + ns.Name}},
			}, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	awaitRight(t, kube, ns.Name)
	cluster := &kubeforward.Cluster{Kubeconfig: personal(t, path, "alice@"+ns.Name), Namespace: ns.Name, Account: "tuning",
		Audience: "fantasia"}
	token, err := cluster.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts, want those of a JWT", len(parts))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Sub string
		Aud []string
		Exp int64
		Iat int64
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Sub != "system:serviceaccount:"+ns.Name+":tuning" || !slices.Equal(claims.Aud, []string{"fantasia"}) ||
		claims.Exp-claims.Iat != 3600 {
		t.Errorf("the token's claims are %s", text)
	}
	cluster.Account = "default"
	if _, err := cluster.Token(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("a token of another account: %v, want that it is forbidden", err)
	}
}

// personal writes a kubeconfig file like one at a path, for another user.
func personal(t *testing.T, path, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range config.AuthInfos {
		auth.Impersonate = user
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// awaitRight waits until alice may create tokens: the API server sees new rights only after a moment.
func awaitRight(t *testing.T, kube kubernetes.Interface, namespace string) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "alice@" + namespace, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: "tuning",
		},
	}}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("alice has no right to a token: %+v, %v", answer, err)
		}
		if answer.Status.Allowed {
			break
		}
	}
}
