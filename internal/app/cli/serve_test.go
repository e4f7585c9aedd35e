package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
)

// A server says where it is, refuses to share its directory, and ends with the process
// that started it.
func TestServeEndsWithItsParent(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	state := filepath.Join(t.TempDir(), "state")
	stdin, parent := io.Pipe()
	output, stdout := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(t.Context(), []string{"serve", "--state", state, "--exit-with-parent"},
			cli.Options{Stdin: stdin, Stdout: stdout, Stderr: &stderr, Version: "test"})
	}()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at standalone.Address
	if err := json.Unmarshal(line, &at); err != nil || at.State != state || at.PID != os.Getpid() ||
		!strings.HasPrefix(at.URL, "http://127.0.0.1:") {
		t.Errorf("stdout has %q (%v)", line, err)
	}

	var second bytes.Buffer
	code := cli.Main(t.Context(), []string{"serve", "--state", state},
		cli.Options{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &second})
	if code != cli.ExitInUse || !strings.Contains(second.String(), at.URL) || !strings.Contains(second.String(), state) {
		t.Errorf("a second server: exit code %d, %s", code, &second)
	}

	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("exit code %d, stderr %s", code, &stderr)
	}
}

// Whoever says so lets everybody in, also from other machines.
func TestServeInsecure(t *testing.T) {
	stdin, parent := io.Pipe()
	output, stdout := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		args := []string{"serve", "--state", filepath.Join(t.TempDir(), "state"), "--listen", "0.0.0.0:0", "--insecure", "--exit-with-parent"}
		code := cli.Main(t.Context(), args, cli.Options{Stdin: stdin, Stdout: stdout, Stderr: &stderr, Version: "test"})
		_ = stdout.Close() // if it ends before it is ready
		ended <- code
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err := errors.Join(err, parent.Close()); err != nil {
		t.Error(err)
	}
	if code := <-ended; code != cli.ExitOK || !strings.Contains(line, `"url"`) {
		t.Errorf("exit code %d: %s%s", code, line, &stderr)
	}
}
