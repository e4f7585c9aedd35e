package kubeforward

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

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
