//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// keyReaders is the role of the cluster's own that lets its subjects read the keys of its tokens.
const keyReaders = "system:service-account-issuer-discovery"

// acceptTokens prepares what the chart needs to accept the cluster's tokens for a team's service
// account, as docs/operate/security.md describes it, beside a token of the tests. It returns the values of the
// chart's coordinator.
func (g *team) acceptTokens() string {
	g.t.Helper()
	token := rand.Text()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: release + "-token"}, StringData: map[string]string{
		"token": token, "tokens": fmt.Sprintf("tests %x write\n", sha256.Sum256([]byte(token))),
	}}
	if _, err := g.kube.CoreV1().Secrets(g.home.namespace).Create(g.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "issuer-discovery-" + g.home.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: keyReaders},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	}
	if _, err := g.kube.RbacV1().ClusterRoleBindings().Create(g.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if err := g.kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), binding.Name, metav1.DeleteOptions{}); err != nil {
			g.t.Error(err)
		}
	})
	text, err := g.kube.CoreV1().RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	var document struct{ Issuer string }
	if err := json.Unmarshal(text, &document); err != nil || document.Issuer == "" {
		g.t.Fatalf("the cluster's document is %s (%v)", text, err)
	}
	return fmt.Sprintf(`
  tokensSecret: %s-token
  oidc:
    issuer: %s
    keys: https://kubernetes.default.svc/openid/v1/jwks
    caConfigMap: kube-root-ca.crt
    grants: ["sub=system:serviceaccount:%[3]s:tuning read %[3]s."]
`, release, document.Issuer, g.namespace)
}

// member writes a kubeconfig file of somebody of the group team-a, who has no other rights in the cluster
// than those of deploy/samples/team-token.yaml.
func (g *team) member() (kubeconfig string) {
	g.t.Helper()
	if out, err := exec.CommandContext(g.t.Context(), "kubectl", "--namespace", g.namespace, "apply", "--filename",
		filepath.Join(root, "deploy/samples/team-token.yaml")).CombinedOutput(); err != nil {
		g.t.Fatalf("%v\n%s", err, out)
	}
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, auth := range config.AuthInfos {
		auth.Impersonate, auth.ImpersonateGroups = "alice", []string{"team-a"}
	}
	kubeconfig = filepath.Join(g.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		g.t.Fatal(err)
	}
	return kubeconfig
}

// ingress returns an address of the release's API outside of the cluster.
func (c *cluster) ingress() string {
	c.t.Helper()
	target, err := url.Parse(c.address())
	if err != nil {
		c.t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport:     c.transport(),
		FlushInterval: -1,
	})
	c.t.Cleanup(s.Close)
	return s.URL
}

// ownToken shows an ended study, and the log of the trial with a number, to somebody who has the team's rights only: the
// cluster issues the token, and the API accepts it for the studies of the team's namespace.
func (g *team) ownToken(name string, number int) {
	g.t.Helper()
	plugin, kubeconfig, server := g.pluginProgram(), g.member(), g.home.ingress()
	for _, call := range []struct {
		args []string
		ok   bool
		says string
	}{
		{[]string{"trials", name, "--service-account", "tuning"}, true, "COMPLETED"},
		{[]string{"logs", name, strconv.Itoa(number), "--service-account", "tuning"}, true, "error"},
		{[]string{"trials", name}, false, "unauthenticated"},
		{[]string{"trials", name, "--service-account", "tuning", "--audience", "other"}, false, "unauthenticated"},
		{[]string{"trials", "elsewhere." + name, "--service-account", "tuning"}, false, "not found"},
		{[]string{"trials", name, "--service-account", "training"}, false, "forbidden"},
		{[]string{"trials", name, "--service-account", "default", "--namespace", g.home.namespace}, false, "forbidden"},
	} {
		cmd := exec.CommandContext(g.t.Context(), plugin, append([]string{"--namespace", g.namespace}, call.args...)...)
		cmd.Env = append(os.Environ(), "FANTASIA_SERVER="+server, "KUBECONFIG="+kubeconfig)
		out, err := cmd.CombinedOutput()
		if (err == nil) != call.ok || !strings.Contains(string(out), call.says) {
			g.t.Errorf("kubectl fantasia %q: %v, want success: %v, with %q in\n%s", call.args, err, call.ok, call.says, out)
		}
	}
}
