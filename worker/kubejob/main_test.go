//go:build !e2e

package kubejob

import (
	"testing"

	"go.uber.org/goleak"
)

// The clients of a real cluster keep connections, so tests with one go without.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
