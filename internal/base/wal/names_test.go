//go:build unix

package wal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// otherNames gives a file further names, and returns all by what they are.
func otherNames(t *testing.T, path string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	names := map[string]string{"itself": path, "a symbolic link": filepath.Join(dir, "soft"),
		"a link to the link": filepath.Join(dir, "softer"),
		"a hard link":        path + ".hard", "a link to the directory": filepath.Join(dir, "dir", filepath.Base(path))}
	err := errors.Join(os.Symlink(path, names["a symbolic link"]), os.Symlink(names["a symbolic link"], names["a link to the link"]),
		os.Link(path, names["a hard link"]), os.Symlink(filepath.Dir(path), filepath.Join(dir, "dir")))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A file that is open cannot be opened again under any of its names, also after it was written anew.
func TestOneFileOfManyNames(t *testing.T) {
	path := written(t, "one")
	names := otherNames(t, path)
	for how, name := range names {
		l, _, _, err := Open(name, magic)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if err := l.Replace([][]byte{[]byte("all")}); !errors.Is(err, ErrOtherName) {
			t.Errorf("%s: a file with a hard link is written anew: %v, want ErrOtherName", how, err)
		}
		for second, other := range names {
			if _, _, _, err := Open(other, magic); !errors.Is(err, ErrInUse) {
				t.Errorf("open by %s and by %s: %v, want ErrInUse", how, second, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(names["a hard link"]); err != nil {
		t.Fatal(err)
	}
	delete(names, "a hard link")
	l, _, _, err := Open(names["a symbolic link"], magic)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Replace([][]byte{[]byte("all")}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(names["a symbolic link"]); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become a file of its own: %v", err)
	}
	for second, other := range names {
		if _, _, _, err := Open(other, magic); !errors.Is(err, ErrInUse) {
			t.Errorf("after Replace, open by %s: %v, want ErrInUse", second, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, records, _, err := Open(path, magic); err != nil || !slices.Equal(texts(records), []string{"all"}) {
		t.Errorf("read %q, %v", texts(records), err)
	}
}

// Nobody's file is written over when a log is written anew at a path that has become another file's.
func TestReplaceOfAFileThatWentAway(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(path string) error
		err  error
	}{
		{"removed", os.Remove, nil},
		{"moved", func(p string) error { return os.Rename(p, p+".moved") }, ErrOtherName},
		{"another in its place", func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, []byte("mine"), 0o600)) }, ErrOtherName},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, "one")
			l, _, _, err := Open(path, magic)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := c.then(path); err != nil {
				t.Fatal(err)
			}
			if err := l.Replace([][]byte{[]byte("all")}); !errors.Is(err, c.err) {
				t.Errorf("Replace: %v, want %v", err, c.err)
			}
			if text, err := os.ReadFile(path); err == nil && c.err != nil && string(text) != "mine" {
				t.Errorf("the other file has become %q", text)
			}
		})
	}
}

// What is no file is refused before anything is written, and nothing is left beside it.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("dir"), 0o700), os.Symlink(at("nothing"), at("dangling")),
		os.Symlink(os.DevNull, at("device")))
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"socket": "is a socket", "pipe": "is a named pipe", "dir": "is a directory",
		"device":   "is a device",
		"dangling": "is a symbolic link to a file that does not exist"} {
		if _, _, _, err := Open(at(name), magic); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), at(name)+" "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("there were %d entries, and now %d: %v", len(before), len(after), err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%s has become a file: %v", os.DevNull, err)
	}
}

// opener is another process that opens and closes a log when it is told.
type opener struct {
	to      io.Writer
	answers *bufio.Scanner
}

func startOpener(t *testing.T) *opener {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // it ends with its input
	cmd.Env = append(os.Environ(), "WAL_OPENER=1")
	to, err1 := cmd.StdinPipe()
	from, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(to.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return &opener{to, bufio.NewScanner(from)}
}

func (o *opener) tell(t *testing.T, what, path string) {
	t.Helper()
	if _, err := fmt.Fprintln(o.to, what, path); err != nil {
		t.Fatal(err)
	}
}

func (o *opener) answer(t *testing.T) string {
	t.Helper()
	if !o.answers.Scan() {
		t.Fatalf("the process has ended: %v", o.answers.Err())
	}
	return o.answers.Text()
}

// TestMain is also the process of an opener.
func TestMain(m *testing.M) {
	if os.Getenv("WAL_OPENER") == "" {
		os.Exit(m.Run())
	}
	var l *Log
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		what, argument, _ := strings.Cut(in.Text(), " ")
		var err error
		if what == "open" {
			var opened *Log
			if opened, _, _, err = Open(argument, magic); err == nil {
				l = opened
			}
		} else {
			err = errors.Join(l.Append([]byte(argument)), l.Sync(l.Written()), l.Close())
		}
		switch {
		case errors.Is(err, ErrInUse):
			fmt.Println("in use")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("ok")
		}
	}
}

// Of two processes that open a file at once, by any two of its names, one is refused, and all records stay.
func TestTwoProcesses(t *testing.T) {
	path := written(t, "one")
	names := otherNames(t, path)
	ways := slices.Sorted(func(yield func(string) bool) {
		for _, name := range names {
			if !yield(name) {
				return
			}
		}
	})
	both := [2]*opener{startOpener(t), startOpener(t)}
	want := []string{"one"}
	for round := range 100 {
		first, second := ways[round%len(ways)], ways[round/len(ways)%len(ways)]
		both[0].tell(t, "open", first)
		both[1].tell(t, "open", second)
		answers := [2]string{both[0].answer(t), both[1].answer(t)}
		won := slices.Index(answers[:], "ok")
		if won < 0 || answers[1-won] != "in use" {
			t.Fatalf("round %d, %s and %s: %q", round, first, second, answers)
		}
		record := fmt.Sprintf("round-%d", round)
		both[won].tell(t, "close", record)
		if answer := both[won].answer(t); answer != "ok" {
			t.Fatalf("round %d: %s", round, answer)
		}
		want = append(want, record)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if records, whole, err := Decode(data, magic); err != nil || whole != len(data) || !slices.Equal(texts(records), want) {
		t.Errorf("after all rounds: %d records of %d, %d of %d bytes, %v", len(records), len(want), whole, len(data), err)
	}
}

// Asking whether a file is open opens no file, makes none, and keeps nobody from opening it.
func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if InUse(path) {
		t.Error("a file that does not exist is said to be open")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was made")
	}
	var asking sync.WaitGroup
	done := make(chan struct{})
	asking.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				InUse(path)
			}
		}
	})
	for range 20 {
		l, _, _, err := Open(path, magic)
		if err != nil {
			t.Error(err)
			break
		}
		if !InUse(path) {
			t.Error("an open file is said to be free")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	asking.Wait()
	if InUse(path) {
		t.Error("a closed file is said to be open")
	}
}
