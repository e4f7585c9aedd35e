package bench

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary acts as a program in stream mode when it is started as one.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		serveProgram()
		return
	}
	goleak.VerifyTestMain(m)
}
