//go:build e2e

package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"
)

// tool builds a program of a module below tools/, once for each state of the
// module, and returns its path.
func tool(t *testing.T, dir, pkg string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	state := sha256.Sum256([]byte(readFile(t, "tools/"+dir+"/go.sum")))
	name := path.Base(pkg)
	if pkg == "." {
		name = dir
		source := sha256.Sum256([]byte(readFile(t, "tools/"+dir+"/main.go")))
		state = sha256.Sum256(append(state[:], source[:]...))
	}
	out := filepath.Join(cache, "fantasia-testenv", fmt.Sprintf("%s@%s", name, hex.EncodeToString(state[:6])))
	if _, err := os.Stat(out); err == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	// Of Prometheus's ways to find what to scrape, lists of addresses are enough.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "remove_all_sd", "-o", out, pkg)
	cmd.Dir = filepath.Join(root, "tools", dir)
	// The checksum database does not know the collector's modules everywhere:
	// go.sum does.
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GONOSUMDB=go.opentelemetry.io/*,github.com/open-telemetry/*")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
	return out
}
