//go:build python

package examples

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The workload prints its metric as the study reads it, with the defaults and with all flags.
func TestSQLite(t *testing.T) {
	dir := filepath.Join(root, "sqlite")
	s, err := parseFile(t, filepath.Join(dir, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range []string{"",
		"--journal-mode=wal --wal-autocheckpoint=100 --page-size=8192 --cache=8000 --mmap=4 --temp-store=memory"} {
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{"workload.py"}, strings.Fields(flags)...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("workload.py %s: %v", flags, err)
		}
		m := regexp.MustCompile(s.Spec.Trial.Metrics.Pattern).FindSubmatch(out)
		if m == nil {
			t.Fatalf("workload.py %s prints %q, in which %s finds nothing", flags, out, s.Spec.Trial.Metrics.Pattern)
		}
		if cost, err := strconv.ParseFloat(string(m[1]), 64); err != nil || cost <= 0 {
			t.Errorf("workload.py %s costs %s; want a positive time", flags, m[1])
		}
	}
}
