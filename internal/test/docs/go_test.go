package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// goPrograms are what the programs in pages print.
var goPrograms = map[string]*regexp.Regexp{
	// 100/b + b/10 is smallest at 31.6; the delay costs only.
	"docs/tune/go.md main.go": regexp.MustCompile(`^cost 6\.3`),
	// More workers are faster and need more memory; the limit allows 20.
	"docs/tune/go.md front.go": regexp.MustCompile(`^((20|1?[0-9]) workers: [0-9.]+ s, [0-9]+ MB, knee: (true|false)\n){2,}$`),
	// A square of a distance, which is least at (2, -5).
	"docs/migrate/from-goptuna.md main.go": regexp.MustCompile(`^value 0\.[0-9]+ at x1=(1\.[5-9]|2\.[0-5]), x2=-(4\.[5-9]|5\.[0-5])\n$`),
}

// The programs in pages compile, and find what they look for.
func TestGoProgram(t *testing.T) {
	found := 0
	for _, page := range []string{"docs/tune/go.md", "docs/migrate/from-goptuna.md"} {
		blocks, _ := split(t, page)
		for _, b := range blocks {
			if b.language == "go" && b.options["file"] != "" { // not a part of a program
				found++
				runProgram(t, page, b.options["file"], b.text)
			}
		}
	}
	if found != len(goPrograms) {
		t.Errorf("the pages have %d programs, want %d", found, len(goPrograms))
	}
}

// runProgram builds and runs a program of a page, and checks what it prints.
func runProgram(t *testing.T, page, name, text string) {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, name), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
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
	if want := goPrograms[page+" "+name]; err != nil || want == nil || !want.Match(out) {
		t.Errorf("%s: %s: %v, and not %s:\n%s", page, name, err, want, out)
	}
}
