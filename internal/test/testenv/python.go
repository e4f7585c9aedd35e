package testenv

import (
	"cmp"
	"os"
)

// Python returns the interpreter of Python with the packages of the client's tests, which
// make test-client names in PYTHON.
func Python() string { return cmp.Or(os.Getenv("PYTHON"), "python3") }
