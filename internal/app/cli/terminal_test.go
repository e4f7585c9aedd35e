package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// pseudoTerminal returns a terminal and what it shows: both ends of a device of Linux (pty(7)).
func pseudoTerminal(t *testing.T) (shows, tty *os.File) {
	t.Helper()
	shows, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shows.Close() })
	if err := unix.IoctlSetPointerInt(int(shows.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(shows.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return shows, tty
}

// What others have written cannot steer the terminal of whoever reads it, on either output;
// a file gets it as it is.
func TestTextsOfOthersOnATerminal(t *testing.T) {
	const text = "\x1b]0;title\a\x1b[2Jdone\n"
	shows, tty := pseudoTerminal(t)
	a := newApp(Options{Stdout: tty, Stderr: tty})
	for _, w := range []io.Writer{a.Stdout, a.Stderr, a.root.OutOrStdout(), a.root.ErrOrStderr()} {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		// A terminal shows a text in pieces, so one read may get a part of it.
		want := `\x1b]0;title\x07\x1b[2Jdone` + "\r\n"
		shown := make([]byte, len(want))
		if n, err := io.ReadFull(shows, shown); err != nil {
			t.Fatalf("the terminal shows %q, then %v; want %q", shown[:n], err, want)
		}
		if string(shown) != want {
			t.Errorf("the terminal shows %q, want %q", shown, want)
		}
	}
	if width, is := terminal(a.Stdout); !is || width < 1 {
		t.Errorf("the terminal has %d columns (%t), want a terminal", width, is)
	}
	if direct(a.Stderr) != io.Writer(tty) {
		t.Error("a live display does not get the terminal itself")
	}
	var file bytes.Buffer
	if _, err := io.WriteString(newApp(Options{Stdout: &file}).Stdout, text); err != nil || file.String() != text {
		t.Errorf("a file has %q, %v; want the text as it is", file.String(), err)
	}
}
