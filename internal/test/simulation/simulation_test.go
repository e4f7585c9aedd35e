// Package simulation plays schedules of faults against the programs' own shells: real
// coordinators with their elections and ledgers, and real workers, over a broker and an
// etcd in memory, in virtual time.
package simulation

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
)

var (
	simSeed      = flag.Uint64("sim.seed", 0, "play only this schedule")
	simFirst     = flag.Uint64("sim.first", 1, "the first schedule")
	simSchedules = flag.Int("sim.schedules", 30, "how many schedules to play")
)

// TestShell plays schedules; see world_test.go. The seed gives the studies, the processes
// and the faults. It does not give the order in which the goroutines of an instant run, nor
// the nonces, so a schedule that has failed may have to be played some times again.
func TestShell(t *testing.T) {
	first, n := *simFirst, *simSchedules
	if *simSeed != 0 {
		first, n = *simSeed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			play(t, seed)
		})
	}
}

// play plays a schedule in a bubble of its own.
func play(t *testing.T, seed uint64) {
	dir := stateDir(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, dir)
		w.run()
		if t.Failed() || *simSeed != 0 {
			w.tell()
			t.Logf("again: go test ./internal/test/simulation -run '^TestShell$' -sim.seed=%d -count 10", seed)
		}
	})
}
