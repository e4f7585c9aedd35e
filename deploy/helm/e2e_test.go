//go:build e2e

package helm

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRules holds that Prometheus accepts the chart's rules.
func TestRules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), tool(t, "prometheus", "promtool"), "check", "rules", "--lint=all", "--lint-fatal",
		filepath.Join(chart, "files", "rules.yaml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// others are the kinds that a cluster has only where somebody has installed them.
var others = map[string]bool{"ScaledObject": true, "ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true}

// TestClusterAccepts shows every combination to the API server of KUBECONFIG.
func TestClusterAccepts(t *testing.T) {
	for _, file := range combinations(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var manifests bytes.Buffer
			for document := range strings.SplitSeq(render(t, "--values="+file, "--namespace=default"), "\n---") {
				all := objects(t, document)
				if len(all) == 1 && !others[all[0].kind()] {
					manifests.WriteString("---\n" + strings.TrimPrefix(document, "---") + "\n")
				}
			}
			cmd := exec.CommandContext(t.Context(), "kubectl", "apply", "--dry-run=server", "--filename=-")
			cmd.Stdin = &manifests
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "Warning") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
