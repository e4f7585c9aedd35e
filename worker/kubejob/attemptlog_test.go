package kubejob

import (
	"io"
	"log/slog"
	"strings"
	"testing"

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

func TestAttemptLog(t *testing.T) {
	dir := t.TempDir()
	l := newAttemptLog(dir, attemptID(1), slog.New(slog.DiscardHandler))
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
	l = newAttemptLog(dir, attemptID(1), l.log)
	l.open()
	l.write("", []byte("epoch 1"))
	l.close("")
	if got := kept(t, dir, attemptID(1)); got != "epoch 1\n" {
		t.Errorf("written again, the log is %q", got)
	}
}

func TestLongLog(t *testing.T) {
	dir := t.TempDir()
	l, line := newAttemptLog(dir, attemptID(1), slog.New(slog.DiscardHandler)), []byte(strings.Repeat("x", 1<<20-1))
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
