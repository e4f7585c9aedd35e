//go:build e2e

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestCluster types docs/operate/kubernetes.md word for word, into the cluster of
// KUBECONFIG, with the images that have the tag FANTASIA_E2E_TAG.
func TestCluster(t *testing.T) {
	tag := os.Getenv("FANTASIA_E2E_TAG")
	if tag == "" {
		t.Fatal("FANTASIA_E2E_TAG says which images to test")
	}
	path := programs(t)
	r := newReader(t, filepath.Dir(testenv.Tool(t, "kube", "helm.sh/helm/v4/cmd/helm"))+string(os.PathListSeparator)+path)
	if err := os.CopyFS(filepath.Join(r.dir, "deploy"), os.DirFS(filepath.Join(root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("kubectl", "delete", "namespace", "fantasia", "--ignore-not-found", "--wait=false").Run() // where the test has failed
	})
	blocks, _ := split(t, "docs/operate/kubernetes.md")
	for i := range blocks {
		if mark := blocks[i].options["cluster"]; mark != "" {
			blocks[i].marks = append(blocks[i].marks, mark)
		}
		blocks[i].text = strings.ReplaceAll(blocks[i].text, "0.1.0", tag)
	}
	r.follow(blocks, false)
}
