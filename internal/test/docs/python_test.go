//go:build python

package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestPython runs all of README.md, docs/tune/attach.md and docs/operate/sidecar.md, also what
// needs curl or a python3 with scikit-learn: scripts/test-python.
func TestPython(t *testing.T) {
	path := programs(t)
	for _, document := range []string{"README.md", "docs/tune/attach.md", "docs/operate/sidecar.md"} {
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
