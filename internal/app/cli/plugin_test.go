package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/oidc"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/test/oidctest"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// tokenRequests answers as the API server of a cluster that lets its caller do one thing: request
// tokens of the service account tuning of namespace team-a. It returns a kubeconfig file, and what
// the caller was refused.
func tokenRequests(t *testing.T, issuer *oidctest.Issuer, key oidctest.Key) (kubeconfig string, refused func() []string) {
	t.Helper()
	var mu sync.Mutex
	var others []string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/namespaces/team-a/serviceaccounts/tuning/token", func(w http.ResponseWriter, q *http.Request) {
		var request struct {
			Spec struct{ Audiences []string }
		}
		if err := json.NewDecoder(q.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		token := key.Sign(t, map[string]any{
			"iss": issuer.URL, "sub": "system:serviceaccount:team-a:tuning", "aud": request.Spec.Audiences, "exp": time.Now().Add(time.Hour).Unix(),
		}, nil)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": %q}}`, token)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		others = append(others, q.Method+" "+q.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "not allowed", "code": 403}`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: team-a}}],
		clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, s.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, func() []string { mu.Lock(); defer mu.Unlock(); return others }
}

// teamAPI is an API that accepts the issuer's tokens, with a study of team-a and one of team-b.
func teamAPI(t *testing.T, issuer *oidctest.Issuer) (url string) {
	t.Helper()
	b := servertest.New(t)
	for _, name := range []string{"team-a.digits", "team-b.digits"} {
		if _, err := b.CreateAs(t.Context(), name, []byte(strings.Replace(file, "NAME", "resource", 1))); err != nil {
			t.Fatal(err)
		}
		b.Put(name, record.Trial{Number: 1, State: study.TrialCompleted, Values: []float64{0.5},
			Point: study.Point{"lr": 1e-3, "width": int64(64)}})
	}
	grants := filepath.Join(t.TempDir(), "grants")
	if err := os.WriteFile(grants, []byte("sub=system:serviceaccount:team-a:tuning read team-a.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := oidc.Options{Issuer: issuer.URL, Audience: "fantasia", Roots: issuer.Roots}
	var err error
	if o.Grants, err = server.ReadClaimGrants(grants, nil); err != nil {
		t.Fatal(err)
	}
	verifier, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	path, handler, err := server.New(b, server.Options{Tokens: verifier})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// A team needs the address of the API and one right in its own namespace. The token opens the
// studies of that namespace and no others.
func TestPluginWithoutRightsElsewhere(t *testing.T) {
	issuer, key := oidctest.New(t), oidctest.NewKey(t, "cluster")
	issuer.SetKeys(key.Public())
	kubeconfig, refused := tokenRequests(t, issuer, key)
	url := teamAPI(t, issuer)
	plugin := func(args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		code := cli.Main(t.Context(), append(args, "--server", url, "--kubeconfig", kubeconfig),
			cli.Options{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Plugin: true})
		return code, out.String()
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"trials", "digits", "--service-account", "tuning"}, cli.ExitOK, "0.5"},
		{[]string{"trials", "team-b.digits", "--service-account", "tuning"}, cli.ExitError, "not found"},
		{[]string{"trials", "digits"}, cli.ExitError, "unauthenticated"},
		{[]string{"trials", "digits", "--service-account", "tuning", "--audience", "other"}, cli.ExitError, "unauthenticated"},
		{[]string{"trials", "digits", "--service-account", "tuning", "--token", "x"}, cli.ExitUsage, "set only one"},
	} {
		if code, out := plugin(c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%q: exit code %d, want %d with %q:\n%s", c.args, code, c.code, c.says, out)
		}
	}
	if others := refused(); len(others) > 0 {
		t.Errorf("the plugin asked for more than a token: %q", others)
	}
	if code, out := plugin("trials", "digits", "--service-account", "other"); code != cli.ExitError ||
		!strings.Contains(out, "request a token of service account team-a/other: not allowed") {
		t.Errorf("another account: exit code %d:\n%s", code, out)
	}
}
