package kubeforward

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What kubectl writes to standard error is its error, in one part or byte by byte. Everything else
// is shown at once, also a question at which the line does not end.
func TestSplitter(t *testing.T) {
	const text = "Open https://login.example/device and enter ABCD\n" +
		"E1128 04:05:06.123456    1234 memcache.go:265] couldn't get current server API group list\n" +
		"Code: \nWarning: the cluster is old\n" +
		"Error from server (Forbidden): pods is forbidden: User \"alice\" cannot list resource \"pods\"\n" +
		"Enter the code again: "
	for _, size := range []int{1, 3, len(text)} {
		var others bytes.Buffer
		s := &splitter{others: &others}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if want := "Open https://login.example/device and enter ABCD\nCode: \nEnter the code again: "; others.String() != want {
			t.Errorf("in parts of %d bytes: shown %q, want %q", size, others.String(), want)
		}
		err := s.explain(t.Context(), errors.New("exit status 1"))
		if want := `Error from server (Forbidden): pods is forbidden: User "alice" cannot list resource "pods"`; err.Error() != want {
			t.Errorf("in parts of %d bytes: %v, want %s", size, err, want)
		}
		if got := advise(err).Error(); !strings.Contains(got, "--server or FANTASIA_SERVER") {
			t.Errorf("%s: want what to do without the right", got)
		}
	}
}

// An error is bounded, and a failure without words has the reason for it.
func TestExplain(t *testing.T) {
	s := &splitter{}
	for range 1000 {
		_, _ = s.Write([]byte("error: " + strings.Repeat("x", 1000) + "\n"))
	}
	if err := s.explain(t.Context(), errors.New("exit status 1")); len(err.Error()) > maxWords+1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if err := (&splitter{}).explain(t.Context(), errors.New("signal: killed")); err.Error() != "kubectl failed: signal: killed" {
		t.Errorf("%v", err)
	}
}

func TestNamespaceOf(t *testing.T) {
	const config = `{"current-context": %q, "contexts": [{"name": "a", "context": {"cluster": "c", "namespace": "team-a"}}, {"name": "b", "context": {"cluster": "c"}}]}`
	for _, test := range []struct{ current, context, want, says string }{
		{"a", "", "team-a", ""}, {"a", "b", "default", ""}, {"b", "a", "team-a", ""},
		{"", "", "", "choose one with --context; known are a, b"},
		{"a", "c", "", `context "c" is not in the kubeconfig; known are a, b`},
	} {
		got, err := namespaceOf(fmt.Appendf(nil, config, test.current), test.context)
		if got != test.want || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	if _, err := namespaceOf([]byte(`{"contexts": null, "current-context": ""}`), ""); err == nil || !strings.Contains(err.Error(), "set KUBECONFIG or --kubeconfig") {
		t.Errorf("an empty kubeconfig: %v", err)
	}
}

// The line that kubectl port-forward begins with, in parts (kubectl 1.32).
func TestAnnouncement(t *testing.T) {
	a := &announcement{port: make(chan string, 1)}
	for _, part := range []string{"Forwarding from 127.0.0.1:", "40123 -", "> 8080\nForwarding from [::1]:40123 -> 8080\n", "Handling connection for 40123\n", "Forwarding from 127.0.0.1:1 -> 2\n"} {
		if n, err := a.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if got := <-a.port; got != "40123" || len(a.port) > 0 {
		t.Errorf("port %s, and %d more; want 40123 once", got, len(a.port))
	}
}

func TestReady(t *testing.T) {
	pod := func(name, instance, ready, scheme, deleted string) string {
		return fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"app.kubernetes.io/instance": %q}%s}, "status": {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": %q}]},
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
		got, err := ready([]byte(`{"items": [`+strings.Join(test.pods, ",")+`]}`), "n")
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want …%s…", err, test.says)
			}
			continue
		}
		if err != nil || got.name+" "+got.url("7") != test.want || got.number != 8080 {
			t.Errorf("%+v, %v, want %s with port 8080", got, err, test.want)
		}
	}
}
