//go:build !python

package migrate

// What Optuna has written for tests: journals, which need no Python. scripts/test-client tests with both.
var (
	endings = []string{".log"}
	python  = ""
)
