//go:build mutants

package simulation

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
)

var simMutant = flag.String("sim.mutant", "", "switch this guard off")

func TestMain(m *testing.M) {
	flag.Parse()
	mutant.SwitchOff(mutant.Guard(*simMutant))
	os.Exit(m.Run())
}

// mutantSchedules is within how many schedules the simulator must notice.
const mutantSchedules = 300

// TestShellNotices switches one guard off at a time, in a process of its own: a simulator
// that does not notice shows nothing.
func TestShellNotices(t *testing.T) {
	const part = 20
	scripts := t.TempDir()
	for _, g := range mutant.All() {
		t.Run(string(g), func(t *testing.T) {
			t.Parallel()
			for first := 1; first <= mutantSchedules; first += part {
				out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestShell$", "-sim.mutant", string(g),
					fmt.Sprint("-sim.first=", first), fmt.Sprint("-sim.schedules=", part), "-sim.scripts", scripts).CombinedOutput()
				if err == nil {
					continue
				}
				for line := range strings.Lines(string(out)) {
					if _, what, ok := strings.Cut(line, "check_test.go:"); ok { // the line of a violation
						t.Logf("noticed within %d schedules: %.200s", first+part-1, what)
						return
					}
				}
				t.Fatalf("the simulator has failed without a violation: %v\n%s", err, out)
			}
			t.Errorf("%d schedules without the guard %s broke nothing", mutantSchedules, g)
		})
	}
}
