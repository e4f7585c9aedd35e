package fantasia_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/study"
)

// journalMagic is the first line of a journal.
const journalMagic = "fantasia journal 1"

// small is a study of a few trials that report, some of which fail or are stopped early.
type small struct {
	space *fantasia.Space
	x     fantasia.Param[float64]
	mode  fantasia.Param[string]
}

const smallTrials = 4

func newSmall() *small {
	s := &small{space: fantasia.NewSpace()}
	s.x = s.space.Float("x", 0, 1)
	s.mode = s.space.Choice("mode", []string{"plain", "fails"})
	return s
}

func (s *small) open(path string) (*fantasia.Study, error) {
	return fantasia.Minimize(s.space, fantasia.Options{
		State: path, Parallel: 2, Trials: smallTrials, Algorithm: fantasia.Algorithm{Name: "random"}, Seed: 3,
		EarlyStopping: fantasia.EarlyStopping{Name: "percentile", Settings: map[string]any{"minCompleted": 1}},
	})
}

// evaluate is the objective.
func (s *small) evaluate(_ context.Context, t *fantasia.Trial) (float64, error) {
	for step := 1; step <= 2; step++ {
		if err := t.Report(step, s.x.Of(t)); err != nil {
			return 0, err
		}
	}
	if s.mode.Of(t) == "fails" && s.x.Of(t) > 0.5 {
		return 0, errors.New("it fails here")
	}
	return s.x.Of(t), nil
}

// finish opens a copy of a journal, runs the study to its end, and checks that what the journal
// had of ended trials stayed and was not evaluated again.
func (s *small) finish(t *testing.T, content []byte) {
	t.Helper()
	stored, err := journal.Read(content)
	if err != nil {
		t.Fatal(err)
	}
	before := map[int]float64{}
	if stored != nil {
		for _, trial := range stored.Trials {
			if trial.State == study.TrialCompleted {
				before[trial.Number] = trial.Values.First()
			} else if trial.State.Terminal() {
				before[trial.Number] = math.NaN()
			}
		}
	}
	path := filepath.Join(memory(t), "state")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := s.open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var mu sync.Mutex
	evaluated := map[int]int{}
	err = u.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
		mu.Lock()
		evaluated[trial.Number()]++
		mu.Unlock()
		return s.evaluate(ctx, trial)
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for r, err := range u.Trials() {
		if err != nil {
			t.Fatal(err)
		}
		if r.State == fantasia.Pending || r.State == fantasia.Running || r.State == fantasia.Cancelled {
			t.Errorf("trial %d is %s at the end", r.Number, r.State)
		}
		ended++
		value, known := before[r.Number]
		switch n := evaluated[r.Number]; {
		case known && n != 0:
			t.Errorf("trial %d had ended and was evaluated again", r.Number)
		case !known && n != 1 && r.State != fantasia.Stopped: // that may have been decided before
			t.Errorf("trial %d was evaluated %d times", r.Number, n)
		case known && value != r.Value && !math.IsNaN(value):
			t.Errorf("trial %d had the value %v and has %v", r.Number, value, r.Value)
		}
		if curve, err := u.Curve(r.Number); err != nil || len(curve) == 0 {
			t.Errorf("trial %d has the curve %v, %v", r.Number, curve, err)
		}
	}
	if ended != smallTrials {
		t.Errorf("%d trials have ended, want %d", ended, smallTrials)
	}
}

// A rule for early stopping goes on to compare trials with those that an earlier process has evaluated.
func TestRuleRemembersEarlierProcesses(t *testing.T) {
	path := filepath.Join(memory(t), "state")
	begin := func() *fantasia.Study {
		space, _ := line()
		u, err := fantasia.Minimize(space, fantasia.Options{State: path, Trials: 5, Algorithm: random, EarlyStopping: fantasia.EarlyStopping{
			Name: "median", Settings: map[string]any{"minCompleted": 4},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	evaluate := func(u *fantasia.Study, value float64) error {
		trial, err := u.Ask(t.Context())
		for step := 1; err == nil && step <= 5; step++ {
			err = trial.Report(step, value)
		}
		return errors.Join(err, u.Tell(trial, value, err))
	}
	u := begin()
	for n := range 4 {
		if err := evaluate(u, float64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	u = begin()
	if err := evaluate(u, 100); !errors.Is(err, fantasia.ErrStopped) {
		t.Errorf("the worst of five trials ends with %v, want ErrStopped", err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
}

// memory returns a directory in memory, where the system has one, so that fsync costs nothing.
func memory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "fantasia")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A process may die at any byte that it writes: the journal then holds the records that were
// whole, and the study goes on from them.
func TestCutAtEachByte(t *testing.T) {
	s := newSmall()
	path := filepath.Join(t.TempDir(), "state")
	u, err := s.open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(u.Run(t.Context(), s.evaluate), u.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen, last := -1, 0
	for n := len(journalMagic) + 1; n <= len(content); n++ {
		records, _, err := wal.Decode(content[:n], journalMagic)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		stored, err := journal.Read(content[:n])
		if err != nil || (stored == nil) != (len(records) == 0) {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		if len(records) == seen { // the same as one byte before
			continue
		}
		seen = len(records)
		if ended := ended(stored); ended < last {
			t.Errorf("cut at byte %d: %d trials have ended, but %d had before", n, ended, last)
		} else {
			last = ended
		}
		s.finish(t, content[:n])
	}
	if last != smallTrials || seen < 4*smallTrials {
		t.Errorf("the whole journal has %d ended trials in %d records", last, seen)
	}
}

// If the machine dies, what was not synced is lost: a trial is on the disk before its evaluation begins, and its
// result before anybody is told of it.
func TestDurableBeforeAcknowledged(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		for _, algorithm := range []string{"random", "tpe"} {
			t.Run(fmt.Sprintf("%s, parallel %d", algorithm, parallel), func(t *testing.T) { durableBeforeAcknowledged(t, algorithm, parallel) })
		}
	}
}

func durableBeforeAcknowledged(t *testing.T, algorithm string, parallel int) {
	const trials = 24
	path := filepath.Join(t.TempDir(), "state")
	var u *fantasia.Study
	onDisk := func(trial int, ended bool) {
		size := u.Durable()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		stored, err := journal.Read(content[:size])
		if err != nil || stored == nil || len(stored.Trials) < trial || ended && !stored.Trials[trial-1].State.Terminal() {
			t.Errorf("trial %d (ended: %v) is not in the %d bytes on the disk: %v", trial, ended, size, err)
		}
	}
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 1)
	told := 0
	u, err := fantasia.Minimize(space, fantasia.Options{
		State: path, Parallel: parallel, Trials: trials, Algorithm: fantasia.Algorithm{Name: algorithm}, Seed: 1,
		Progress: func(p fantasia.Progress) { // one call at a time
			onDisk(p.Trial.Number, true)
			told++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	one, err := u.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	onDisk(one.Number(), false)
	if err := u.Tell(one, 0.5, nil); err != nil {
		t.Fatal(err)
	}
	onDisk(one.Number(), true)
	if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		onDisk(trial.Number(), false)
		return x.Of(trial), nil
	}); err != nil {
		t.Fatal(err)
	}
	onDisk(trials, true)
	if told != trials {
		t.Errorf("%d results were announced, want %d", told, trials)
	}
}

// ended returns how many trials of a journal have ended.
func ended(stored *journal.Stored) (n int) {
	if stored == nil {
		return 0
	}
	for _, t := range stored.Trials {
		if t.State.Terminal() {
			n++
		}
	}
	return n
}

// victimState names the environment variable with the state of the process that is killed.
const victimState = "FANTASIA_TEST_VICTIM"

// victim runs a study and prints what happens: "begin N" before an evaluation of trial N, and
// "told N" once its result is kept. After each line it waits for one on its input.
func victim(path string) {
	s := newSmall()
	u, err := s.open(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	input := bufio.NewReader(os.Stdin)
	say := func(what string, n int) {
		fmt.Println(what, n)
		if _, err := input.ReadString('\n'); err != nil {
			os.Exit(1)
		}
	}
	for {
		t, err := u.Ask(context.Background())
		if err != nil {
			break
		}
		say("begin", t.Number())
		value, failed := s.evaluate(context.Background(), t)
		if err := u.Tell(t, value, failed); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		say("told", t.Number())
	}
	_ = u.Close()
}

// A process that is killed loses nothing that it was told, and its successor evaluates none of
// that again.
func TestKilled(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state")
	told, lives := map[string]int{}, 0
	for whole := false; !whole; lives++ {
		if lives > 3*smallTrials {
			t.Fatal("the study does not end")
		}
		whole = live(t, program, path, 1+lives%3, told)
	}
	if len(told) != smallTrials || lives < 4 {
		t.Errorf("%d trials were told in %d lives, want %d", len(told), lives, smallTrials)
	}
	for trial, n := range told {
		if n != 1 {
			t.Errorf("trial %s was told %d times", trial, n)
		}
	}
	s := newSmall()
	u, err := s.open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for r, err := range u.Trials() {
		if err != nil {
			t.Fatal(err)
		}
		if !r.State.Terminal() || told[fmt.Sprint(r.Number)] != 1 {
			t.Errorf("trial %d is %s", r.Number, r.State)
		}
	}
}

// live runs the victim until it has said a number of lines, and kills it then. It reports whether
// the victim ended by itself. It counts what was told.
func live(t *testing.T, program, path string, lines int, told map[string]int) bool {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), victimState+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewScanner(out)
	for range lines {
		if !output.Scan() {
			return cmd.Wait() == nil
		}
		what, trial, _ := strings.Cut(output.Text(), " ")
		switch {
		case what == "told":
			told[trial]++
		case what != "begin":
			t.Errorf("the victim says %q", output.Text())
		case told[trial] > 0:
			t.Errorf("trial %s begins again after it was told", trial)
		}
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
	// What it still did: it may have told one trial more.
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := journal.Read(content)
	if err != nil || stored == nil {
		t.Fatalf("read the state: %v", err)
	}
	for _, r := range stored.Trials {
		if r.State.Terminal() && told[fmt.Sprint(r.Number)] == 0 && r.State != study.TrialCancelled {
			told[fmt.Sprint(r.Number)] = 1
		}
	}
	return false
}
