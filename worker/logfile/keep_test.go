package logfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// An attempt with a log of up to 4 KiB takes two blocks: its folder and the log.
const one = 2 * 4096

type worker struct {
	t       *testing.T
	dir     string
	spooled []messaging.AttemptID
	unknown error // what is spooled
	*Keeper
}

func newWorker(t *testing.T, limit int64) *worker {
	w := &worker{t: t, dir: t.TempDir()}
	w.Keeper = NewKeeper(w.dir, limit, func() ([]messaging.AttemptID, error) { return w.spooled, w.unknown })
	return w
}

func attempt(trial int) messaging.AttemptID {
	return messaging.AttemptID{Study: "study", Trial: trial, Attempt: 1}
}

// write makes an attempt's log of so many bytes.
func (w *worker) write(folder string, size int) {
	w.t.Helper()
	folder = filepath.Join(w.dir, folder)
	if err := errors.Join(os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, File(messaging.LogStdout)), []byte(strings.Repeat("x", size)), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// run plays an attempt from its start to its end.
func (w *worker) run(trial, size int) {
	w.t.Helper()
	w.Begin(attempt(trial))
	w.write(Dir(attempt(trial)), size)
	if err := w.End(attempt(trial)); err != nil {
		w.t.Fatal(err)
	}
}

// want compares which of the trials 1, 2, … have a folder.
func (w *worker) want(trials ...bool) {
	w.t.Helper()
	for i, want := range trials {
		if got := w.has(Dir(attempt(i + 1))); got != want {
			w.t.Errorf("trial %d has its folder: %v, want %v", i+1, got, want)
		}
	}
}

func (w *worker) has(folder string) bool {
	_, err := os.Stat(filepath.Join(w.dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return err == nil
}

func TestOldestGoFirst(t *testing.T) {
	w := newWorker(t, 3*one)
	for trial := 1; trial <= 5; trial++ {
		w.run(trial, 10)
	}
	w.want(false, false, true, true, true)
	if w.has("trials/study/1") {
		t.Error("the folder of a trial without attempts stays")
	}
	w.run(6, 2*one) // a folder and 16 KiB: 20 KiB of the 24, and no room for another's 8
	w.want(false, false, false, false, false, true)
}

// A larger one than the bound goes as soon as it has ended.
func TestLargerThanTheBound(t *testing.T) {
	w := newWorker(t, one)
	w.run(1, 10)
	w.run(2, one)
	w.want(false, false)
	if w.has("trials/study") {
		t.Error("the folder of a study without attempts stays")
	}
}

func TestRunningAndUnsentStay(t *testing.T) {
	w := newWorker(t, one)
	w.Begin(attempt(1))
	w.write(Dir(attempt(1)), 10*one)
	w.spooled = []messaging.AttemptID{attempt(2)}
	w.run(2, 10)
	w.run(3, 10)
	w.run(4, 10)
	w.want(true, true, false, false) // 2 takes all of the room
	w.spooled = nil
	w.run(5, 10)
	w.want(true, false, false, false, true)
	w.spooled = []messaging.AttemptID{{Study: "study", Trial: 5}} // all of its attempts
	w.run(6, 10)
	w.want(true, false, false, false, true, false)
	w.unknown = errors.New("broken")
	w.Begin(attempt(7))
	w.write(Dir(attempt(7)), 10)
	if err := w.End(attempt(7)); !errors.Is(err, w.unknown) || !w.has(Dir(attempt(7))) {
		t.Errorf("it is not known what has to stay, and End returned %v", err)
	}
	w.spooled, w.unknown = nil, nil
	if err := w.End(attempt(1)); err != nil {
		t.Fatal(err)
	}
	w.want(false, false, false, false, false)
}

// What an earlier process left counts, with its last change as its end.
func TestLeftByAnEarlierProcess(t *testing.T) {
	w := newWorker(t, 2*one)
	now := time.Now()
	for trial := 1; trial <= 4; trial++ {
		w.write(Dir(attempt(trial)), 10)
		// Later trials are older here; trial 1 is running.
		at := now.Add(-time.Duration(trial) * time.Hour)
		for _, name := range []string{"", File(messaging.LogStdout)} {
			if err := os.Chtimes(filepath.Join(w.dir, Dir(attempt(trial)), name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	others := []string{"trials/study/notes", "trials/study/07", "trials/study/0/1", "trials/of you/1/1", "checkpoints/study/1"}
	for _, other := range others {
		w.write(other, 100*one)
	}
	w.Begin(attempt(1))
	if err := w.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(true, true, true, false)
	for _, other := range others {
		if !w.has(other) {
			t.Errorf("%s was removed, which is not an attempt's", other)
		}
	}
}

// The log of a long-lived program goes when the program is over, not before.
func TestLongLivedPrograms(t *testing.T) {
	w := newWorker(t, one)
	w.BeginStream("study", 0)
	w.write(StreamDir("study", 0), 10*one)
	w.run(1, 10)
	w.run(2, 10)
	if !w.has(StreamDir("study", 0)) {
		t.Error("the log of a program that runs was removed")
	}
	if err := w.EndStream("study", 0); err != nil {
		t.Fatal(err)
	}
	w.want(false, false)
	if w.has("streams/study") {
		t.Error("the log of a program that has ended stays beyond the bound")
	}
}

// What cannot be removed is named, does not keep the others, and is tried again.
func TestCannotRemove(t *testing.T) {
	w := newWorker(t, one)
	broken := errors.New("broken")
	w.remove = func(path string) error {
		if path == filepath.Join(w.dir, Dir(attempt(1))) {
			return broken
		}
		return os.RemoveAll(path)
	}
	w.run(1, 10)
	w.Begin(attempt(2))
	w.write(Dir(attempt(2)), 10)
	if err := w.End(attempt(2)); !errors.Is(err, broken) {
		t.Errorf("End returned %v, want %v", err, broken)
	}
	w.want(true, false)
	w.remove = os.RemoveAll
	w.run(3, 10)
	w.want(false, false, true)
}

// leave makes the folders of the first trials, as an earlier process would have.
func (w *worker) leave(trials int) {
	w.t.Helper()
	for trial := 1; trial <= trials; trial++ {
		w.write(Dir(attempt(trial)), 10)
	}
}

// left counts the folders of the first trials.
func (w *worker) left(trials int) (n int) {
	w.t.Helper()
	for trial := 1; trial <= trials; trial++ {
		if w.has(Dir(attempt(trial))) {
			n++
		}
	}
	return n
}

// Load ends with its context, after the portion that it is at. Another one removes the rest.
func TestLoadIsInterrupted(t *testing.T) {
	const trials = 3 * portion
	w := newWorker(t, 0)
	w.leave(trials)
	ctx, cancel := context.WithCancel(t.Context())
	w.remove = func(path string) error {
		cancel()
		return os.RemoveAll(path)
	}
	if err := w.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.left(trials); n != trials-portion {
		t.Errorf("%d folders are left of %d, want all but %d", n, trials, portion)
	}
	again := NewKeeper(w.dir, 0, w.needed)
	if err := again.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.left(trials); n != trials-portion {
		t.Errorf("a context that has ended: %d folders are left, want %d", n, trials-portion)
	}
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.left(trials); n != 0 {
		t.Errorf("%d folders are left, want none", n)
	}
}

// An attempt can begin while Load removes what is too much.
func TestBeginDuringLoad(t *testing.T) {
	const trials = 5 * portion
	w := newWorker(t, 0)
	w.leave(trials)
	begun, n := make(chan struct{}), 0
	w.remove = func(path string) error {
		if n++; n == 1 {
			go func() {
				defer close(begun)
				w.Begin(attempt(trials))
			}()
		}
		select {
		case <-begun:
		default:
			time.Sleep(time.Millisecond) // whoever waits for the lock this long gets it next
		}
		return os.RemoveAll(path)
	}
	if err := w.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-begun
	if n := w.left(trials); n != 1 || !w.has(Dir(attempt(trials))) {
		t.Errorf("%d folders are left, want only that of the attempt which has begun", n)
	}
}

// What Load cannot remove is named once, however many portions there are.
func TestLoadCannotRemove(t *testing.T) {
	const trials = 3 * portion
	w := newWorker(t, one)
	w.leave(trials)
	first := time.Now().Add(-time.Hour)
	for _, name := range []string{"", File(messaging.LogStdout)} {
		if err := os.Chtimes(filepath.Join(w.dir, Dir(attempt(1)), name), first, first); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	w.remove = func(path string) error {
		if path == filepath.Join(w.dir, Dir(attempt(1))) {
			return broken
		}
		return os.RemoveAll(path)
	}
	err := w.Load(t.Context())
	if !errors.Is(err, broken) || strings.Count(err.Error(), broken.Error()) != 1 {
		t.Errorf("Load returned %v, want %v once", err, broken)
	}
	if n := w.left(trials); n != 1 || !w.has(Dir(attempt(1))) {
		t.Errorf("%d folders are left, want only that which cannot be removed", n)
	}
}
