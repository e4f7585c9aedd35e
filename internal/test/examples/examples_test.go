// Package examples tests the studies and programs of examples/.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

const root = "../../../examples"

// parseFile parses a study file.
func parseFile(t *testing.T, path string) (*study.Study, error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file.Parse(text, file.WithFile(path))
}

// Every study file is valid, and each parameter is a flag of its script.
func TestParametersAreFlags(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "*", "study.yaml"))
	if err != nil || len(paths) < 8 {
		t.Fatalf("found the studies %q (%v); want 8 or more", paths, err)
	}
	for _, path := range paths {
		s, err := parseFile(t, path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(s.Spec.Trial.Command) < 2 || !strings.HasSuffix(s.Spec.Trial.Command[1], ".py") {
			continue // of a program in Go, which has tests of its own
		}
		script, err := os.ReadFile(filepath.Join(filepath.Dir(path), s.Spec.Trial.Command[1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Spec.Parameters {
			if !strings.Contains(string(script), `"--`+p.Name+`"`) && !strings.Contains(string(script), `"`+p.Name+`"`) {
				t.Errorf("%s has the parameter %s, which is no flag of %s", path, p.Name, s.Spec.Trial.Command[1])
			}
		}
	}
}

// No level of optimisation changes what the program computes, and it does nothing undefined:
// the script compares its output with the one that it expects.
func TestBenchmarkIsWellDefined(t *testing.T) {
	source := filepath.Join(root, "gcc", "benchmark.c")
	script, err := os.ReadFile(filepath.Join(root, "gcc", "measure.py"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^CHECKSUM = "([0-9a-f]{16})"$`).FindSubmatch(script)
	if want == nil {
		t.Fatal("measure.py has no CHECKSUM")
	}
	for _, flags := range []string{"-O0", "-O3 -funroll-loops", "-O1 -fsanitize=undefined,address -fno-sanitize-recover"} {
		program := filepath.Join(t.TempDir(), "benchmark")
		if out, err := exec.CommandContext(t.Context(), "gcc", append(strings.Fields(flags), "-Wall", "-Werror", "-o", program, source)...).
			CombinedOutput(); err != nil {
			t.Fatalf("gcc %s: %v\n%s", flags, err, out)
		}
		out, err := exec.CommandContext(t.Context(), program).Output()
		if err != nil || strings.TrimSpace(string(out)) != string(want[1]) {
			t.Errorf("with %s it prints %q (%v); want %s", flags, out, err, want[1])
		}
	}
}
