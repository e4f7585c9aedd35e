package coordinatorcli

import (
	"io"
	"strings"
	"testing"
)

func TestLeaseTTL(t *testing.T) {
	for _, value := range []string{"1s", "2500ms"} {
		cmd := New("dev", io.Discard)
		cmd.SetArgs([]string{"--lease-ttl", value})
		want := "--lease-ttl is "
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "at least 2s") {
			t.Errorf("--lease-ttl %s: %v, want %s…", value, err, want)
		}
	}
}
