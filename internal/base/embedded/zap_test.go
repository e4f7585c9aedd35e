package embedded

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestLastWords holds that etcd's end is explained, and that a full disk gets advice.
func TestLastWords(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/state/db", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err    error
		advice bool
	}{{full, true}, {os.ErrPermission, false}} {
		text := lastWords("/state").text("failed to commit tx", []zapcore.Field{zap.Int("n", 1), zap.Error(c.err)})
		if !strings.Contains(text, "/state: failed to commit tx: "+c.err.Error()) ||
			strings.Contains(text, "run the same command again") != c.advice {
			t.Errorf("%v is explained by %q", c.err, text)
		}
	}
}
