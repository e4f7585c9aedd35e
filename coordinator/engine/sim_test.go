package engine

import (
	"flag"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
)

var (
	simSeed      = flag.Uint64("sim.seed", 0, "play only this schedule of the simulator")
	simSchedules = flag.Int("sim.schedules", 100, "how many schedules the simulator plays")
)

// TestSimulator plays schedules of faults; see simworld_test.go.
func TestSimulator(t *testing.T) {
	simulate(t, func(seed uint64) error { return newWorld(seed, 0).run() })
}

// TestSimulatorOfClients plays schedules of a study without a command; see
// simclient_test.go.
func TestSimulatorOfClients(t *testing.T) {
	simulate(t, func(seed uint64) error { return newClientWorld(seed, 0).run() })
}

// fewer returns how many of n schedules or draws a test plays: all of them, or a tenth with -short,
// which makes the package's tests an inner loop of a few seconds.
func fewer(n int) int {
	if testing.Short() {
		return (n + 9) / 10
	}
	return n
}

// needsAll skips a test with -short that shows nothing with fewer schedules or trials.
func needsAll(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs all its schedules or trials")
	}
}

// simulate plays the schedules on all cores, up to the first that fails.
func simulate(t *testing.T, play func(seed uint64) error) {
	t.Helper()
	first, n := testseed.Get(), fewer(*simSchedules)
	if *simSeed != 0 {
		first, n = *simSeed, 1
	}
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(runtime.GOMAXPROCS(0))
	for seed := first; seed < first+uint64(n) && ctx.Err() == nil; seed++ {
		g.Go(func() error {
			if err := play(seed); err != nil {
				return fmt.Errorf("%w\nagain: go test ./coordinator/engine -run '^%s$' -sim.seed=%d", err, t.Name(), seed)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestSimulatorIsDeterministic: a seed is one schedule, or it explains nothing.
func TestSimulatorIsDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := newWorld(seed, 0), newWorld(seed, 0)
		errA, errB := a.run(), b.run()
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if diff := cmp.Diff(fingerprint(a.e), fingerprint(b.e)); diff != "" {
			t.Errorf("seed %d gives, played twice:\n%s", seed, diff)
		}
	}
}
