package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

// has reports whether a folder of the worker exists.
func (r *rig) has(folder string) bool {
	r.t.Helper()
	_, err := os.Stat(filepath.Join(r.options.StateDir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return err == nil
}

// Ended attempts leave no more than the bound, running ones stay, and so does what an
// earlier process left, until there is no space for it.
func TestEndedTrialsAreRemoved(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	r.options.Slots = 2
	// A trial leaves its folder, two empty logs and one of 64 KiB: four blocks at least.
	r.options.KeepTrials = 128 << 10
	earlier := logfile.Dir(messaging.AttemptID{Study: "earlier", Trial: 1, Attempt: 1})
	if err := os.MkdirAll(filepath.Join(r.options.StateDir, earlier), 0o700); err != nil {
		t.Fatal(err)
	}
	release := filepath.Join(t.TempDir(), "release")
	const write = `head -c 65536 /dev/zero > "$FANTASIA_TRIAL_DIR/big"; echo '{"fantasia": {"metrics": {"error": 1}}}'`
	leave := r.start()
	defer leave()
	r.offer(shell(1, study.ModeProcess, write+`; while [ ! -e `+release+` ]; do sleep 0.01; done`))
	r.until("a claim of trial 1", func() bool { return len(r.claims) == 1 })
	for trial := 2; trial <= 5; trial++ {
		r.offer(shell(trial, study.ModeProcess, write))
		r.untilTold(trial)
	}
	if !r.has(logfile.Dir(assigned(1).AttemptID)) {
		t.Error("the folder of a running trial was removed")
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.untilTold(1)
	leave()
	for trial, want := range map[int]bool{1: true, 2: false, 3: false, 4: false, 5: false} { // two do not fit
		if got := r.has(logfile.Dir(assigned(trial).AttemptID)); got != want {
			t.Errorf("trial %d has its folder: %v, want %v", trial, got, want)
		}
	}
	if r.has(earlier) {
		t.Error("what an earlier process left stays, though there is no space")
	}
}

// While the leader has no result of it, an attempt's folder stays.
func TestUnsentTrialsAreKept(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	r.options.KeepTrials = 1
	r.change(func() { r.silent = true })
	leave := r.start()
	defer leave()
	for trial := 1; trial <= 2; trial++ {
		r.offer(shell(trial, study.ModeProcess, `echo '{"fantasia": {"metrics": {"error": 1}}}'`))
		r.untilTold(trial)
	}
	leave()
	for trial := 1; trial <= 2; trial++ {
		if !r.has(logfile.Dir(assigned(trial).AttemptID)) {
			t.Errorf("the folder of trial %d was removed, whose result the leader has not confirmed", trial)
		}
	}
}

// The log of a long-lived program stays as long as the program.
func TestLongLivedProgramsKeepTheirLog(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	r.options.KeepTrials = 1
	leave := r.start()
	defer leave()
	const program = `while read line; do n=$((n+1)); echo "{\"fantasia\": {\"trial\": $n, \"metrics\": {\"error\": 1}, \"done\": true}}"; done`
	for trial := 1; trial <= 3; trial++ {
		r.offer(shell(trial, study.ModeStream, program))
		r.untilTold(trial)
	}
	if folder := logfile.StreamDir("study-id", 0); !r.has(folder) {
		t.Error("the log of a program that runs was removed")
	}
	leave()
	if folder := logfile.StreamDir("study-id", 0); r.has(folder) {
		t.Error("the log of a program that has ended stays beyond the bound")
	}
}

// The program of another study still runs while a trial is only offered: if the claim is
// refused, its log stays.
func TestRefusedClaimsKeepTheLogOfAnIdleProgram(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	r.options.KeepTrials = 1
	other, err := r.broker.Worker("other", testPool)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	elsewhere := shell(1, study.ModeProcess, echo)
	elsewhere.Study = "another-study"
	claim := &messaging.Claim{
		Version: messaging.SchemaVersion, AttemptID: elsewhere.AttemptID, Pool: testPool, Worker: "other", At: time.Now(),
	}
	if err := other.Claim(t.Context(), "id", claim); err != nil {
		t.Fatal(err)
	}
	leave := r.start()
	defer leave()
	const program = `n=1; while read line; do echo "{\"fantasia\": {\"trial\": $n, \"metrics\": {\"error\": 1}, \"done\": true}}"; n=$((n+2)); done`
	r.offer(shell(1, study.ModeStream, program))
	r.untilTold(1)
	r.offer(elsewhere)
	r.offer(shell(3, study.ModeStream, program)) // the same program: it has counted
	r.untilTold(3)
	if told := r.told(3); told[messaging.OutcomeCompleted] != 1 {
		t.Errorf("told %v of the trial after the refused one", told)
	}
	if folder := logfile.StreamDir("study-id", 0); !r.has(folder) {
		t.Error("the log of an idle program was removed because of a trial that was claimed elsewhere")
	}
}
