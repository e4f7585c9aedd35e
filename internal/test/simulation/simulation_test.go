// Package simulation plays schedules of faults against the programs' own shells: real coordinators
// with their elections and ledgers, and real workers with their disks, over a broker and an etcd in
// memory, which pass the same tests as real ones. Time is virtual, so a schedule of minutes takes
// a fraction of a second.
//
// The seed of a schedule draws two or three coordinators, two to four workers, up to three studies,
// of which some stop trials early, promote them, have several objectives or are evaluated by clients
// of the API, and these faults:
//
//   - Coordinators and workers are killed, also at a drawn request to etcd or the broker: before it,
//     after it, or so that it is executed around the end of the dead leader's lease. Some workers
//     lose their disks.
//   - Requests are lost, executed without an answer, executed late, delayed for up to 20 s, or
//     executed twice. A process is cut off from etcd, from the broker, or from both.
//   - The clock of a worker steps, by up to a year.
//   - etcd is away, is full, or compacts its history under its readers. In half of the schedules a
//     transaction may hold so little that most commits need the redo log.
//   - A stream is deleted or goes back in time; the assignments and the fence are deleted.
//   - A backup is restored, into the same etcd or into an empty one, while the broker keeps what it
//     has. Sometimes coordinators run on the empty etcd first.
//
// These promises are checked all the time:
//
//   - Each commit comes from the coordinator that holds the leader's key at that moment.
//   - No program or client gets an attempt before the ledger has it. No attempt is run twice, unless
//     claims were deleted.
//   - A completed trial has a value that its attempt has found. A trial that has ended does not change.
//   - If the API answered a client that a trial is completed, the ledger has it with the client's
//     value, unless an older backup was restored.
//   - Each promoted trial is the one that the rule chooses at its place in the ledger.
//   - Values of several objectives are those of one attempt, and the front has exactly the trials
//     that no other one dominates.
//   - The optimiser makes the suggestions of each study again from its records, bit for bit.
//   - A completed study has exactly as many trials as its budget. A watch misses no change.
//
// Each study MUST end within 20 minutes after the last fault, without a result left on a worker's
// disk. A schedule that fails leaves a script, a file with one fault in each line: remove lines to
// see which of them matter. Even the same script differs from run to run, in the nonces and in the
// order of the goroutines within an instant, so it is played ten times.
package simulation

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
)

var (
	simSeed      = flag.Uint64("sim.seed", 0, "play only this schedule")
	simFirst     = flag.Uint64("sim.first", testseed.Get(), "the first schedule")
	simSchedules = flag.Int("sim.schedules", 30, "how many schedules to play")
	simReplay    = flag.String("sim.replay", "", "play only the schedule that this script says")
	simScripts   = flag.String("sim.scripts", "", "where to write the scripts of schedules that fail (a temporary directory)")
)

// TestShell plays schedules; see world_test.go. The seed gives the studies, the processes
// and the faults of messages, and draws the troubles, of which a script is written if the
// schedule fails. Nothing gives the order in which the goroutines of an instant run, nor the
// nonces, so a schedule that has failed may have to be played some times again.
func TestShell(t *testing.T) {
	if *simReplay != "" {
		s, err := readScript(*simReplay)
		if err != nil {
			t.Fatal(err)
		}
		play(t, s.Seed, s)
		return
	}
	first, n := *simFirst, *simSchedules
	if *simSeed != 0 {
		first, n = *simSeed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			play(t, seed, nil)
		})
	}
}

// one reports whether a single schedule is played, of which everything is logged.
func one() bool { return *simSeed != 0 || *simReplay != "" }

// play plays a schedule in a bubble of its own, and returns the script of what it played. If
// the schedule fails, play does not return.
func play(t *testing.T, seed uint64, s *script) (played script) {
	t.Helper()
	dir := stateDir(t)
	defer func() {
		if t.Failed() && *simReplay == "" {
			keep(t, &played)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, s, dir)
		w.run()
		played = w.played
		if t.Failed() || one() {
			w.logFailure()
		}
	})
	return played
}

// keep writes the script of a schedule that has failed.
func keep(t *testing.T, s *script) {
	t.Helper()
	dir := *simScripts
	if dir == "" {
		dir = os.TempDir()
	}
	path, err := s.write(dir)
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("again: make simulate-shell REPLAY=%s", path)
}

// TestReplay: a script is read as it was written, and what is played by it is what it says.
func TestReplay(t *testing.T) {
	drawn := play(t, 3, nil)
	if len(drawn.troubles) < 3 {
		t.Fatalf("%d troubles are too few to show anything", len(drawn.troubles))
	}
	path, err := drawn.write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	read, err := readScript(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*read, drawn) {
		t.Errorf("written: %+v\nread: %+v", drawn, *read)
	}
	if again := play(t, read.Seed, read); again.head != drawn.head || !isPrefix(again.troubles, drawn.troubles) {
		t.Errorf("drawn: %+v\nplayed again: %+v", drawn, again)
	}
}

// isPrefix reports whether some troubles are the first of others: once all studies have
// ended, no more are played.
func isPrefix(some, all []trouble) bool {
	return len(some) > 0 && len(some) <= len(all) && slices.Equal(some, all[:len(some)])
}
