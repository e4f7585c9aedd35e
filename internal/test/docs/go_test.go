package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program in docs/tune/go.md compiles, and finds the minimum.
func TestGoProgram(t *testing.T) {
	blocks, _ := split(t, "docs/tune/go.md")
	found := false
	for _, b := range blocks {
		if b.language != "go" || b.options["file"] == "" { // a part of a program
			continue
		}
		found = true
		dir := t.TempDir()
		source, program := filepath.Join(dir, b.options["file"]), filepath.Join(dir, "program")
		if err := os.WriteFile(source, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.Command("go", "build", "-o", program, source)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		run := exec.Command(program)
		run.Dir = dir
		out, err := run.CombinedOutput()
		// 100/b + b/10 is smallest at 31.6; the delay costs only.
		if err != nil || !strings.HasPrefix(string(out), "cost 6.3") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if !found {
		t.Error("docs/tune/go.md has no program")
	}
}
