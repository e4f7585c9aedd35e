package fantasia_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimState); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
