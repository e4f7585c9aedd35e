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
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 0), "stdout.log"), "another slot's\n")
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 2), "stdout.log"), "before\nmine\nafter\n")
	add := func(slot int, id messaging.AttemptID, s logfile.Share) {
		t.Helper()
		if err := s.Keep(dir, slot, id); err != nil {
			t.Fatal(err)
		}
	}
	other := id
	other.Trial = 30
	add(0, other, logfile.Share{End: &logfile.Ends{Stdout: 3}})
	add(2, id, logfile.Share{Begin: logfile.Ends{Stdout: 1}}) // of a program that died at once
	add(2, id, logfile.Share{Begin: logfile.Ends{Stdout: 7}})
	if got := tail(t, dir, messaging.LogStdout, 9); got != "mine\nafter\n" {
		t.Errorf("while it runs: %q", got)
	}
	add(2, id, logfile.Share{Begin: logfile.Ends{Stdout: 7}, End: &logfile.Ends{Stdout: 12}})
	add(2, other, logfile.Share{})
	if got := tail(t, dir, messaging.LogStdout, 9); got != "mine\n" {
		t.Errorf("after its end: %q", got)
	}
	if _, err := logfile.Open(dir, id, messaging.LogStderr); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that was removed: %v", err)
	}
	other.Trial = 4
	if _, err := logfile.Open(dir, other, messaging.LogStdout); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a trial that nobody evaluated: %v", err)
	}
}

// A file of shares that is no text is told with its line.
func TestDamagedShares(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 0), "stdout.log"), "before\n")
	path := filepath.Join(logfile.StreamDir(id.Study, 0), "shares")
	write(t, dir, path, "\n"+strings.Repeat("\x00", 1<<20))
	want := path + ":2: the line is longer than 64 KiB"
	if _, err := logfile.Open(dir, id, messaging.LogStdout); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want the file and the line", err)
	}
}

// A line that was cut off, by a full disk or a power failure, counts for nothing and harms no other.
func TestSharesThatAreCutOff(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 0), "stdout.log"), "before\nmine\nafter\n")
	path := filepath.Join(logfile.StreamDir(id.Study, 0), "shares")
	whole := fmt.Sprintf("\n%d %d 7 0;\n%d %d 7 0 12 0;", id.Trial, id.Attempt, id.Trial, id.Attempt)
	next := id
	next.Trial++
	for cut := range len(whole) {
		write(t, dir, path, whole[:cut])
		_, err := logfile.Open(dir, id, messaging.LogStdout)
		if begun := cut > strings.IndexByte(whole, ';'); begun {
			if got := tail(t, dir, messaging.LogStdout, 9); got != "mine\nafter\n" {
				t.Errorf("cut off after %d bytes: %q", cut, got)
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("cut off after %d bytes: %v", cut, err)
		}
		share := logfile.Share{Begin: logfile.Ends{Stdout: 7}, End: &logfile.Ends{Stdout: 12}}
		if err := errors.Join(logfile.Share{}.Keep(dir, 0, next), share.Keep(dir, 0, id)); err != nil {
			t.Fatal(err)
		}
		if got := tail(t, dir, messaging.LogStdout, 9); got != "mine\n" {
			t.Errorf("written after %d bytes: %q", cut, got)
		}
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
	id := messaging.AttemptID{Study: id.Study, Trial: 5, Attempt: 1}
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 0), "stdout.log"), "all of it")
	write(t, dir, filepath.Join(logfile.StreamDir(id.Study, 0), "shares"), fmt.Sprintf("\n5 1 %d 0 %d 0;", -1<<40, 1<<40))
	l, err := logfile.Open(dir, id, messaging.LogStdout)
	if err != nil {
		t.Fatal(err)
	}
	if l.Size() != int64(len("all of it")) {
		t.Errorf("a share beyond the log has %d bytes", l.Size())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "streams")); err != nil {
		t.Fatal(err)
	}
	write(t, outside, filepath.Join(logfile.StreamDir(id.Study, 0), "shares"), "\n5 1 0 0;")
	write(t, outside, filepath.Join(logfile.StreamDir(id.Study, 0), "stdout.log"), "secret")
	if err := os.Symlink(filepath.Join(outside, "streams"), filepath.Join(dir, "streams")); err != nil {
		t.Fatal(err)
	}
	if l, err := logfile.Open(dir, id, messaging.LogStdout); err == nil {
		t.Errorf("a link of the folder of programs was followed: %d bytes", l.Size())
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
