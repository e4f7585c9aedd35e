package engine

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	simSeed      = flag.Uint64("sim.seed", 0, "play only this schedule of the simulator")
	simSchedules = flag.Int("sim.schedules", 150, "how many schedules the simulator plays")
)

// TestSimulator plays schedules of faults; see simworld_test.go.
func TestSimulator(t *testing.T) {
	first, n := uint64(1), *simSchedules
	if *simSeed != 0 {
		first, n = *simSeed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		if err := newWorld(seed, 0).run(); err != nil {
			t.Fatalf("%v\nagain: go test ./coordinator/engine -run TestSimulator -sim.seed=%d", err, seed)
		}
	}
}

// TestSimulatorOfClients plays schedules of a study without a command; see
// simclient_test.go.
func TestSimulatorOfClients(t *testing.T) {
	first, n := uint64(1), *simSchedules
	if *simSeed != 0 {
		first, n = *simSeed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		if err := newClientWorld(seed, 0).run(); err != nil {
			t.Fatalf("%v\nagain: go test ./coordinator/engine -run TestSimulatorOfClients -sim.seed=%d", err, seed)
		}
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
