package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

var moreHits = flag.Int("failpoints.hits", 0, "kill at each step also at the first so many times")

// endless is a budget that a study does not reach before it is lowered.
const endless = 1_000_000

// faulty is a cluster of programs with failpoints, which share a file of rules.
type faulty struct {
	*cluster
	rules string
	armed int
}

// startFaulty starts one. fixed are rules that always hold.
func startFaulty(t testing.TB, coordinators, workers, slots int, fixed ...string) *faulty {
	t.Helper()
	return startFaultyWith(t, "3s", coordinators, workers, slots, fixed...)
}

func startFaultyWith(t testing.TB, lease string, coordinators, workers, slots int, fixed ...string) *faulty {
	t.Helper()
	f := &faulty{rules: filepath.Join(t.TempDir(), "rules")}
	f.cluster = startBuiltCluster(t, built{[]string{"-tags", "failpoints"}, lease}, coordinators, workers, slots,
		slowVariable+"=1s", "FANTASIA_FAILPOINTS="+strings.Join(append(fixed, "@"+f.rules), ";"))
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
// returns it when it is dead. If it led, another can lead at once. If old is not nil, it led
// and is dead already: the fault is that of a process that takes over.
func (f *faulty) killed(p failpoint.Point, hit int, old *testenv.Process) *testenv.Process {
	f.t.Helper()
	f.arm(fmt.Sprintf("%s=kill@%d", p, hit))
	f.free(old)
	testenv.Eventually(f.t, time.Minute, func(context.Context) error {
		if _, err := os.Stat(f.rules); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("no process has reached %s %d times", p, hit)
		}
		return nil
	})
	all := slices.Concat(slices.Collect(maps.Values(f.Coordinators)), f.workers)
	var dead *testenv.Process
	testenv.Eventually(f.t, time.Minute, func(context.Context) error {
		i := slices.IndexFunc(all, func(c *testenv.Process) bool { return c != old && c.State() != "" })
		if i < 0 {
			return fmt.Errorf("no process has died at %s", p)
		}
		dead = all[i]
		return nil
	})
	if state := dead.State(); state != "signal: killed" {
		f.t.Errorf("at %s the process ended with %s, want signal: killed", p, state)
	}
	f.free(dead)
	return dead
}

// free spares the others the wait for the lease of a leader that is dead. It does nothing for
// another process.
func (f *faulty) free(dead *testenv.Process) {
	f.t.Helper()
	testenv.Eventually(f.t, time.Minute, func(ctx context.Context) error {
		leader, _, err := election.Leader(ctx, f.Etcd, f.Ledger.LeaderKey())
		if errors.Is(err, election.ErrNoLeader) || err == nil && f.Coordinators[leader] != dead {
			return nil
		}
		return errors.Join(err, election.Clear(ctx, f.Etcd, f.Ledger.LeaderKey()))
	})
}

// steps are the points at which a process is killed, by what plays them.
var steps = map[string][]failpoint.Point{
	"leader": {
		failpoint.LeaderBeforeCommit, failpoint.LeaderAfterCommit, failpoint.LeaderBeforePublish, failpoint.LeaderAfterPublish,
		failpoint.LeaderBeforeReceipt, failpoint.LeaderAfterReceipt, failpoint.TrimResults, failpoint.TrimClaims,
	},
	"takeover": {
		failpoint.TakeoverElected, failpoint.TakeoverLedgerFenced, failpoint.TakeoverFenced, failpoint.TakeoverLoaded,
		failpoint.TakeoverDrained, failpoint.LeaderBeforeCommit, failpoint.LeaderAfterCommit,
	},
	"worker": {
		failpoint.WorkerBeforeClaim, failpoint.WorkerAfterClaim, failpoint.WorkerBeforeAck, failpoint.WorkerAfterAck,
		failpoint.WorkerBeforeSpool, failpoint.WorkerSpooling, failpoint.WorkerAfterSpool, failpoint.WorkerBeforePublish,
		failpoint.WorkerAfterPublish, failpoint.WorkerBeforeRemove, failpoint.WorkerAfterRemove,
	},
	"call": {failpoint.CallBeforeCommit, failpoint.CallAfterCommit},
	"disk": {failpoint.SpoolWrite, failpoint.SpoolProbe, failpoint.TrialFiles},
	"time": {failpoint.TrimEvery, failpoint.TrimAfter},
}

// TestNothingIsLostAtAnyStep kills the leader, a replica that takes over and a worker at each
// of their steps, the first time that they get there and a later time. -failpoints.hits plays
// more times.
func TestNothingIsLostAtAnyStep(t *testing.T) {
	for _, p := range failpoint.All() {
		if !slices.ContainsFunc(slices.Collect(maps.Values(steps)), func(list []failpoint.Point) bool { return slices.Contains(list, p) }) {
			t.Errorf("no test plays %s", p)
		}
	}
	for name, kill := range map[string]func(f *faulty, p failpoint.Point, hit int){
		"leader": func(f *faulty, p failpoint.Point, hit int) {
			if p == failpoint.TrimClaims { // of the study that has ended; once a term
				hit = 1
			}
			f.killed(p, hit, nil).Relaunch()
		},
		"takeover": func(f *faulty, p failpoint.Point, _ int) {
			first, _, _ := f.Leader(0)
			first.Kill()
			f.killed(p, 1, first).Relaunch()
			first.Relaunch()
		},
		"worker": func(f *faulty, p failpoint.Point, hit int) { f.killed(p, hit, nil).Relaunch() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const parallelism, first = 8, 8
			f := startFaulty(t, 3, 2, 4, "trim-every=set(500ms)", "trim-after=set(2s)")
			f.Create(strings.Replace(fmt.Sprintf(clusterStudy, "random", first, parallelism), "cluster", "first", 1))
			f.Await("first", first)
			if err := os.Remove(f.log); err != nil { // its trials have the same numbers
				t.Fatal(err)
			}
			f.create("random", endless, parallelism)
			f.Await("cluster", 1)
			for _, p := range steps[name] {
				for _, hit := range hits(name) {
					kill(f, p, hit)
				}
			}
			f.finish(parallelism)
		})
	}
}

// hits are the times at which a step kills. A takeover has each once. Only some calls tell
// a value, so there are more of them.
func hits(name string) []int {
	list := []int{1, 3}
	switch name {
	case "takeover":
		list = list[:1]
	case "call":
		list = []int{1, 2, 3, 4, 5, 6}
	}
	for n := 1; n <= *moreHits; n++ {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// TestReleasesHaveNoFailpoints looks for failpoints in programs as they are released: there
// is neither code nor a name of one.
func TestReleasesHaveNoFailpoints(t *testing.T) {
	texts := []string{"FANTASIA_FAILPOINTS"}
	for _, p := range failpoint.All() {
		texts = append(texts, string(p))
	}
	for _, program := range []string{"coordinator", "worker"} {
		normal, tagged := withSymbols(t, program), withSymbols(t, program, "-tags", "failpoints")
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

// withSymbols builds a program with its symbols, which testenv.Build leaves out.
func withSymbols(t *testing.T, program string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), program)
	build := exec.CommandContext(t.Context(), "go",
		slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-o", out}, flags, []string{module + "cmd/" + program})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return out
}

// failpointSymbols returns the symbols of the package failpoint in a program.
func failpointSymbols(t *testing.T, program string) (found []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "internal/base/failpoint") {
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
