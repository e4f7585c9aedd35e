//go:build python

package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestPython runs all of README.md, docs/tune/attach.md and docs/operate/sidecar.md, also what
// needs a python3 with scikit-learn, and the pages that call curl and openssl with the real
// programs: scripts/test-python.
func TestPython(t *testing.T) {
	for name := range standIns {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("the pages call the real %s: install it (%v)", name, err)
		}
	}
	path := programs(t)
	for _, document := range []string{
		"README.md", "docs/tune/attach.md", "docs/operate/sidecar.md",
		"docs/tune/api.md", "docs/operate/operate.md", "docs/operate/security.md",
	} {
		t.Run(document, func(t *testing.T) {
			blocks, _ := split(t, document)
			r := newReader(t, path)
			r.follow(blocks, true)
			if document == "README.md" {
				r.checkTuned()
			}
		})
	}
}

// TestOptuna runs docs/migrate/from-optuna.md with the interpreter that has Optuna: scripts/test-client.
func TestOptuna(t *testing.T) {
	blocks, _ := split(t, "docs/migrate/from-optuna.md")
	path := filepath.Dir(testenv.Python()) + string(os.PathListSeparator) + programs(t)
	newReader(t, path).follow(blocks, true)
}

// checkTuned looks at what the run of the unmodified script has left. Guessing
// one of ten digits errs in 90 %, a tuned support vector machine in less than 4 %.
func (r *reader) checkTuned() {
	content, err := os.ReadFile(filepath.Join(r.dir, ".fantasia", "svm", "result.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var result struct {
		State  string
		Trials struct{ Completed int }
		Best   struct{ Value float64 }
	}
	if err := json.Unmarshal(content, &result); err != nil {
		r.t.Fatal(err)
	}
	if result.State != "COMPLETED" || result.Trials.Completed != 30 || result.Best.Value >= 0.04 {
		r.t.Errorf("the study has left %s", content)
	}
}
