package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// goPrograms are what the programs in docs/tune/go.md print.
var goPrograms = map[string]*regexp.Regexp{
	// 100/b + b/10 is smallest at 31.6; the delay costs only.
	"main.go": regexp.MustCompile(`^cost 6\.3`),
	// More workers are faster and need more memory; the limit allows 20.
	"front.go": regexp.MustCompile(`^((20|1?[0-9]) workers: [0-9.]+ s, [0-9]+ MB, knee: (true|false)\n){2,}$`),
}

// The programs in docs/tune/go.md compile, and find what they look for.
func TestGoProgram(t *testing.T) {
	blocks, _ := split(t, "docs/tune/go.md")
	found := 0
	for _, b := range blocks {
		if b.language != "go" || b.options["file"] == "" { // a part of a program
			continue
		}
		found++
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
		if want := goPrograms[b.options["file"]]; err != nil || want == nil || !want.Match(out) {
			t.Errorf("%s: %v, and not %s:\n%s", b.options["file"], err, want, out)
		}
	}
	if found != len(goPrograms) {
		t.Errorf("docs/tune/go.md has %d programs, want %d", found, len(goPrograms))
	}
}
