package kubeforward

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwarding answers as an API server that forwards the ports of pods to an address. Like older ones and
// some proxies, it refuses websockets.
func forwarding(t *testing.T, address string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodPost {
			http.Error(w, "only SPDY", http.StatusForbidden)
			return
		}
		if _, err := httpstream.Handshake(q, w, []string{"portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 8)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, q, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if conn == nil {
			return
		}
		for {
			select {
			case <-conn.CloseChan():
				return
			case s := <-streams:
				if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
					_ = s.Close()
					continue
				}
				if got := s.Headers().Get(corev1.PortHeader); got != "8080" {
					t.Errorf("forwarded to port %s, want 8080", got)
				}
				to, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				go func() { _, _ = io.Copy(to, s) }()
				go func() { _, _ = io.Copy(s, to); _ = s.Close() }()
			}
		}
	}
}

// The coordinators of a study are reached through the API server.
func TestConnect(t *testing.T) {
	coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer coordinator.Close()
	mux := http.NewServeMux()
	for path, answer := range map[string]string{
		"GET /apis/fantasia.dev/v1/namespaces/team/studies/digits": `{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "digits"}, "status": {"coordinatorNamespace": "home"}}`,
		"GET /apis/fantasia.dev/v1/namespaces/team/studies/new":    `{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "new"}}`,
		"GET /api/v1/namespaces/home/pods": `{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]},
			"spec": {"containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]}}]}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
	}
	mux.HandleFunc("/api/v1/namespaces/home/pods/a/portforward", forwarding(t, coordinator.Listener.Addr().String()))
	api := httptest.NewServer(mux)
	defer api.Close()
	c := &Cluster{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	kubeconfig := fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, namespace: team}}], clusters: [{name: c, cluster: {server: %q}}]}`, api.URL)
	if err := os.WriteFile(c.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	name, err := c.StudyName("digits")
	if err != nil || name != "team.digits" {
		t.Errorf("digits is study %q, %v; want team.digits", name, err)
	}
	for study, says := range map[string]string{"team.new": "does not say which coordinators run it",
		"team.other": "find study other in namespace team: "} {
		if _, err := c.Connect(t.Context(), study); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("study %s: %v, want …%s…", study, err, says)
		}
	}
	url, err := c.Connect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if string(text) != "hello" || err != nil {
		t.Errorf("through %s: %q, %v", url, text, err)
	}
	c.Close()
	if response, err := http.Get(url); err == nil {
		_ = response.Body.Close()
		t.Error("the port is still forwarded")
	}
}

func TestReady(t *testing.T) {
	pod := func(name, instance, ready, scheme, deleted string) string {
		return fmt.Sprintf(
			`{"metadata": {"name": %q, "labels": {"app.kubernetes.io/instance": %q}%s}, "status": {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": %q}]},
			"spec": {"containers": [{"name": "c", "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http", "scheme": %q}}, "ports": [{"name": "katib", "containerPort": 6789}, {"name": "http", "containerPort": 8080}]}]}}`,
			name, instance, deleted, ready, scheme)
	}
	for _, test := range []struct {
		pods       []string
		want, says string
	}{
		{[]string{pod("a", "r", "False", "HTTP", ""), pod("b", "r", "True", "HTTP", "")}, "b http://127.0.0.1:7", ""},
		{[]string{pod("a", "r", "True", "HTTPS", "")}, "a https://localhost:7", ""},
		{[]string{pod("a", "r", "True", "HTTP", `, "deletionTimestamp": "2026-01-01T00:00:00Z"`)}, "", "no coordinator that is ready"},
		{[]string{pod("a", "r", "True", "HTTP", ""), pod("b", "s", "True", "HTTP", "")}, "", "several releases"},
		{nil, "", "no coordinator that is ready"},
	} {
		var pods corev1.PodList
		if err := json.Unmarshal([]byte(`{"items": [`+strings.Join(test.pods, ",")+`]}`), &pods); err != nil {
			t.Fatal(err)
		}
		got, err := ready(pods.Items, "n")
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want …%s…", err, test.says)
			}
			continue
		}
		if err != nil || got.name+" "+got.url(7) != test.want || got.number != 8080 {
			t.Errorf("%+v, %v, want %s with port 8080", got, err, test.want)
		}
	}
}
