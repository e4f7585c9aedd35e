//go:build e2e

package helm

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere are the kinds that are not shown to the cluster: those of operators that it
// may lack, and those that need resources that a dry run does not create.
var elsewhere = map[string]bool{
	"ScaledObject": true, "ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true,
	"Certificate": true, "CustomResourceDefinition": true, "Pod": true,
}

const namespace = "fantasia-chart"

// TestClusterAccepts submits every combination to the API server of KUBECONFIG, in a
// namespace where Kubernetes enforces its restricted profile.
func TestClusterAccepts(t *testing.T) {
	kubectl(t, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+namespace+"\n  labels: "+
		"{pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}\n", "apply", "--filename=-")
	t.Cleanup(func() {
		_ = exec.Command("kubectl", "delete", "namespace", namespace, "--wait=false").Run() // the rest is empty
	})
	for _, file := range combinations(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var manifests strings.Builder
			for document := range strings.SplitSeq(render(t, "--values="+file, "--namespace="+namespace), "\n---") {
				all := objects(t, document)
				if len(all) == 1 && !elsewhere[all[0].kind()] && strings.Contains(namespace, all[0].text("metadata", "namespace")) {
					manifests.WriteString("---\n" + strings.TrimPrefix(document, "---") + "\n")
				}
			}
			if out := kubectl(t, manifests.String(), "apply", "--server-side", "--dry-run=server", "--filename=-"); strings.Contains(out,
				"Warning") {
				t.Errorf("the cluster warns:\n%s", out)
			}
		})
	}
}

// kubectl runs kubectl with an input and returns its output.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %q: %v\n%s", args, err, out)
	}
	return string(out)
}
