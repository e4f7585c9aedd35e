//go:build python

package migrate

import "github.com/fantasia-hpo/fantasia/internal/test/testenv"

// What Optuna has written for tests: journals and databases, which the interpreter reads.
var (
	endings = []string{".log", ".db"}
	python  = testenv.Python()
)
