package logfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

var id = messaging.AttemptID{Study: "study", Trial: 3, Attempt: 1}

// write makes a file below a worker's folder.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tail is the last lines of a log.
func tail(t *testing.T, dir string, stream messaging.LogStream, lines int) string {
	t.Helper()
	l, err := logfile.Open(dir, id, stream)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	offset, err := l.Tail(lines)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(io.NewSectionReader(l, offset, l.Size()-offset))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 100_000) // longer than what is read at once
	for _, tt := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 3, ""},
		{"\n", 1, "\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc", 2, "b\nc"},
		{"a\nb\nc", 9, "a\nb\nc"},
		{"a\n\n\n", 2, "\n\n"},
		{"a\n" + long + "\nb\n", 2, long + "\nb\n"},
		{long + "\n" + long + "\n", 1, long + "\n"},
	} {
		dir := t.TempDir()
		write(t, dir, filepath.Join(logfile.Dir(id), "stderr.log"), tt.text)
		if got := tail(t, dir, messaging.LogStderr, tt.lines); got != tt.want {
			t.Errorf("the last %d lines of %.20q are %.20q, want %.20q", tt.lines, tt.text, got, tt.want)
		}
	}
}

// However long its lines are, no more than MaxLogTail bytes of a log are the tail.
func TestTailIsBounded(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, filepath.Join(logfile.Dir(id), "stdout.log"), strings.Repeat("x", messaging.MaxLogTail+10))
	if got := tail(t, dir, messaging.LogStdout, 1); len(got) != messaging.MaxLogTail {
		t.Errorf("the tail has %d bytes, want %d", len(got), messaging.MaxLogTail)
	}
}

// An attempt that a long-lived program evaluated has the part of its log that was
// written meanwhile.
func TestShare(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 2), "stdout.log"), "before\nmine\nafter\n")
	s := &logfile.Share{Slot: 2, Begin: map[messaging.LogStream]int64{messaging.LogStdout: 7, messaging.LogStderr: 0}}
	if err := s.Write(dir, id); err != nil {
		t.Fatal(err)
	}
	if got := tail(t, dir, messaging.LogStdout, 9); got != "mine\nafter\n" {
		t.Errorf("while it runs: %q", got)
	}
	s.End = map[messaging.LogStream]int64{messaging.LogStdout: 12, messaging.LogStderr: 0}
	if err := s.Write(dir, id); err != nil {
		t.Fatal(err)
	}
	if got := tail(t, dir, messaging.LogStdout, 9); got != "mine\n" {
		t.Errorf("after its end: %q", got)
	}
	if _, err := logfile.Open(dir, id, messaging.LogStderr); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that was removed: %v", err)
	}
}

// Nothing outside of the worker's folder is read, whatever a program or a message says.
func TestNothingElseIsRead(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "secret")
	folder := filepath.Join(dir, logfile.Dir(id))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(folder, "stdout.log")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "stderr.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, open := range map[string]func() (*logfile.Log, error){
		"a link that leads out": func() (*logfile.Log, error) { return logfile.Open(dir, id, messaging.LogStdout) },
		"a pipe":                func() (*logfile.Log, error) { return logfile.Open(dir, id, messaging.LogStderr) },
		"a path": func() (*logfile.Log, error) {
			return logfile.Open(filepath.Join(dir, "trials"), messaging.AttemptID{Study: "..", Trial: 1, Attempt: 1}, messaging.LogStdout)
		},
		"another file": func() (*logfile.Log, error) { return logfile.Open(dir, id, "../parameters") },
	} {
		if l, err := open(); err == nil {
			t.Errorf("%s was opened: %d bytes", what, l.Size())
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// What the program says of its share leads nowhere else either.
	write(t, dir, filepath.Join(logfile.Dir(id), "share.json"), fmt.Sprintf(`{"slot": -1, "begin": {"stdout": %d}}`, -1<<40))
	if l, err := logfile.Open(dir, id, messaging.LogStdout); err == nil {
		t.Errorf("a share of no program was opened: %d bytes", l.Size())
	}
}
