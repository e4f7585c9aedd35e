package kubejob

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

func attemptID(trial int) messaging.AttemptID {
	return messaging.AttemptID{Study: "study", Trial: trial, Attempt: 1}
}

// kept reads a log as a worker does that is asked for it.
func kept(t *testing.T, dir string, id messaging.AttemptID) string {
	t.Helper()
	l, err := logfile.Open(dir, id, messaging.LogStdout)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(io.NewSectionReader(l, 0, l.Size()))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestKeptLogs(t *testing.T) {
	dir := t.TempDir()
	a, err := openKeptLogs(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := a.attempt(attemptID(1))
	l.write("", []byte("before it is open"))
	l.open()
	l.write("", []byte("epoch 1"))
	if got := kept(t, dir, attemptID(1)); got != "epoch 1\n" {
		t.Errorf("while it runs the log is %q", got)
	}
	l.write("pod-2: ", []byte("epoch 1"))
	l.close("")
	l.open() // changes nothing any more
	l.write("", []byte("after the end"))
	l.close("")
	if got := kept(t, dir, attemptID(1)); got != "epoch 1\npod-2: epoch 1\n" {
		t.Errorf("the log is %q", got)
	}
	// The next process reads the container's log from its beginning.
	again, err := openKeptLogs(dir, a.log)
	if err != nil || again.total != int64(len("epoch 1\npod-2: epoch 1\n")) {
		t.Fatalf("%d bytes are known, %v", again.total, err)
	}
	l = again.attempt(attemptID(1))
	l.open()
	l.write("", []byte("epoch 1"))
	l.close("")
	if got := kept(t, dir, attemptID(1)); got != "epoch 1\n" || again.total != int64(len(got)) || len(again.kept) != 1 {
		t.Errorf("written again, the log is %q; %d bytes of %d logs are known", got, again.total, len(again.kept))
	}
}

func TestLongLog(t *testing.T) {
	dir := t.TempDir()
	a, err := openKeptLogs(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, line := a.attempt(attemptID(1)), []byte(strings.Repeat("x", 1<<20-1))
	l.open()
	for range 17 {
		l.write("", line)
	}
	l.write("", []byte("the end"))
	l.close("the end")
	got := kept(t, dir, attemptID(1))
	_, end, _ := strings.Cut(got, "[fantasia: ")
	if want := "1048584 further bytes were dropped; the last lines were]\nthe end\n"; end != want || len(got) > 16<<20+100 {
		t.Errorf("the log has %d bytes and ends in %q, want %q", len(got), end, want)
	}
}

// The oldest logs are removed first, also those of an earlier process.
func TestOldLogsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for trial := 1; trial <= 3; trial++ {
		path := filepath.Join(dir, logfile.Dir(attemptID(trial)), "stdout.log")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, maxLogs/4); err != nil { // a hole, which needs no disk
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(int64(1000-trial), 0)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := openKeptLogs(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.addLog(filepath.Join(dir, logfile.Dir(attemptID(4))), maxLogs/4)
	a.addLog(filepath.Join(dir, logfile.Dir(attemptID(5))), maxLogs/4)
	a.addLog(filepath.Join(dir, logfile.Dir(attemptID(6))), maxLogs/4)
	for trial, want := range map[int]bool{1: true, 2: false, 3: false} {
		if _, err := os.Stat(filepath.Join(dir, "trials", "study", string(rune('0'+trial)))); (err == nil) != want {
			t.Errorf("trial %d: %v", trial, err)
		}
	}
	if a.total != maxLogs {
		t.Errorf("%d bytes are kept, want %d", a.total, maxLogs)
	}
}
