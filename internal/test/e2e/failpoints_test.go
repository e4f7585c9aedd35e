package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/failpoint"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// endless is a budget that a study does not reach before it is lowered.
const endless = 1_000_000

// faulty is a cluster of programs with failpoints, which share a file of rules.
type faulty struct {
	*cluster
	rules string
	armed int
}

func startFaulty(t testing.TB, coordinators, workers, slots int) *faulty {
	t.Helper()
	f := &faulty{rules: filepath.Join(t.TempDir(), "rules")}
	f.cluster = startBuiltCluster(t, []string{"-tags", "failpoints"}, coordinators, workers, slots, "FANTASIA_FAILPOINTS=@"+f.rules)
	return f
}

// arm replaces the rules, at once for every process.
func (f *faulty) arm(rules string) {
	f.t.Helper()
	f.armed++ // the same rules again count from the beginning: their text differs
	next := fmt.Sprintf("%s.%d", f.rules, f.armed)
	if err := errors.Join(os.WriteFile(next, fmt.Appendf(nil, "%s;#%d", rules, f.armed), 0o600), os.Rename(next, f.rules)); err != nil {
		f.t.Fatal(err)
	}
}

// killed lets the process that first reaches a point so many times kill itself there, and
// returns it when it is dead. If it led, another can lead at once.
func (f *faulty) killed(p failpoint.Point, hit int, provoke func()) *testenv.Process {
	f.t.Helper()
	f.arm(fmt.Sprintf("%s=kill@%d", p, hit))
	if provoke != nil {
		provoke()
	}
	testenv.Eventually(f.t, time.Minute, func(context.Context) error {
		if _, err := os.Stat(f.rules); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("no process has reached %s %d times: %w", p, hit, err)
		}
		return nil
	})
	var dead *testenv.Process
	var address string
	testenv.Eventually(f.t, time.Minute, func(context.Context) error {
		for a, c := range f.Coordinators {
			if c.State() != "" {
				dead, address = c, a
			}
		}
		for _, w := range f.workers {
			if w.State() != "" {
				dead, address = w, ""
			}
		}
		if dead == nil {
			return fmt.Errorf("no process has died at %s", p)
		}
		return nil
	})
	if state := dead.State(); state != "signal: killed" {
		f.t.Errorf("at %s the process ended with %s, want signal: killed", p, state)
	}
	if address != "" {
		f.free(address)
	}
	return dead
}

// free spares the others the wait for the lease of a leader that is dead.
func (f *faulty) free(address string) {
	f.t.Helper()
	testenv.Eventually(f.t, time.Minute, func(ctx context.Context) error {
		leader, _, err := election.Leader(ctx, f.Etcd, f.Ledger.LeaderKey())
		if errors.Is(err, election.ErrNoLeader) || err == nil && leader != address {
			return nil
		}
		return errors.Join(err, election.Clear(ctx, f.Etcd, f.Ledger.LeaderKey()))
	})
}

// TestNothingIsLostAtAnyStep kills the leader at each of its steps.
func TestNothingIsLostAtAnyStep(t *testing.T) {
	const parallelism = 8
	f := startFaulty(t, 3, 2, 4)
	f.create("random", endless, parallelism)
	f.Await("cluster", 1)
	for _, p := range []failpoint.Point{failpoint.LeaderAfterCommit} {
		for _, hit := range []int{1, 3} {
			f.killed(p, hit, nil).Relaunch()
		}
	}
	f.finish(parallelism)
}

// TestReleasesHaveNoFailpoints looks for failpoints in programs as they are released: there
// is neither code nor a name of one.
func TestReleasesHaveNoFailpoints(t *testing.T) {
	texts := []string{"FANTASIA_FAILPOINTS"}
	for _, p := range failpoint.All() {
		texts = append(texts, string(p))
	}
	for _, program := range []string{"coordinator", "worker"} {
		normal, tagged := testenv.Build(t, module+"cmd/"+program), testenv.Build(t, module+"cmd/"+program, "-tags", "failpoints")
		if symbols := failpointSymbols(t, normal); len(symbols) > 0 {
			t.Errorf("%s contains %v", program, symbols)
		}
		if len(failpointSymbols(t, tagged)) == 0 {
			t.Errorf("%s contains no failpoints with the tag: this test sees nothing", program)
		}
		for _, text := range texts {
			if holds(t, normal, text) {
				t.Errorf("%s contains %q", program, text)
			}
			if !holds(t, tagged, text) {
				t.Errorf("%s does not contain %q with the tag: this test sees nothing", program, text)
			}
		}
	}
}

// failpointSymbols returns the symbols of the package failpoint in a program.
func failpointSymbols(t *testing.T, program string) (found []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "internal/failpoint") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func holds(t *testing.T, program, text string) bool {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte(text))
}
