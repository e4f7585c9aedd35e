package architecture

import (
	"os"
	"regexp"
	"testing"
)

// required are a module and its version, on a line of a go.mod.
var required = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// The tools for Kubernetes are built from the same versions of the modules that the programs are built
// from too: otherwise each build of helm would compile Kubernetes a second time.
func TestToolsShareModules(t *testing.T) {
	ours, tools := versions(t, "../../../go.mod"), versions(t, "../../../tools/kube/go.mod")
	shared := 0
	for module, version := range tools {
		if our, both := ours[module]; both {
			shared++
			if version != our {
				t.Errorf("tools/kube/go.mod requires %s %s, and go.mod %s: update the older one with go get", module, version, our)
			}
		}
	}
	if shared < 20 {
		t.Errorf("the two files share %d modules, want those of Kubernetes and more", shared)
	}
}

func versions(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range required.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	return found
}
