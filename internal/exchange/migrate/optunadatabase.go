package migrate

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// Databases are read by Optuna itself: who has one has a Python with Optuna and with the driver of the
// database. A script copies what an import needs to its standard output, as a journal.

//go:embed optunastorage.py
var storageScript string

// maxMessages bounds what is kept of the script's messages, in bytes.
const maxMessages = 4 << 10

// killedWithin is how long a killed script may keep its output open.
const killedWithin = 5 * time.Second

// storageRequest is what the script reads from its standard input, where no one else sees a password.
type storageRequest struct {
	database
	Study         string `json:"study"`
	MaxAttributes int    `json:"max_attributes"`
}

// storageFault is the script's first line. Text says what is wrong, or which package is missing.
type storageFault struct {
	Fault string `json:"fault"`
	Text  string `json:"text"`
}

// readDatabase reads a study from a database by a Python with Optuna. source is the database as the user
// has named it.
func readDatabase(ctx context.Context, python string, where database, source, name string) (*optunaStudy, error) {
	python, err := findPython(python)
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(storageRequest{database: where, Study: name, MaxAttributes: study.MaxAttributes})
	if err != nil {
		return nil, fmt.Errorf("ask for the storage: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := &lastBytes{}
	cmd := exec.CommandContext(ctx, python, "-c", storageScript)
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(request), messages, killedWithin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start Python to read the storage: %w", err)
	}
	s, read := readCopy(out, python, source, name)
	stopped := ctx.Err()
	if read != nil && !errors.Is(read, errCut) {
		cancel() // it may write without end
	}
	ended := cmd.Wait()
	switch {
	case stopped != nil:
		return nil, fmt.Errorf("read the storage: %w", stopped)
	case ended != nil && (read == nil || errors.Is(read, errCut)):
		return nil, fmt.Errorf("%s could not read the storage: %w: %s", python, ended, hidden(messages.line(), source))
	}
	return s, read
}

// errCut means that the script has ended before it said whether it can read the storage.
var errCut = errors.New("the answer is cut off")

// readCopy reads what the script writes: whether it can read the storage, and then the journal.
func readCopy(from io.Reader, python, source, name string) (*optunaStudy, error) {
	in := bufio.NewReader(from)
	line, err := readLine(in)
	if errors.Is(err, io.EOF) {
		return nil, errCut
	}
	var fault storageFault
	if err == nil {
		err = json.Unmarshal(line, &fault)
	}
	if err != nil {
		return nil, fmt.Errorf("read the storage by %s: %w", python, err)
	}
	if fault.Fault != "" {
		fault.Text = hidden(strings.Join(strings.Fields(fault.Text), " "), source)
		return nil, fault.error(python)
	}
	j, err := readLines(in)
	if err != nil {
		return nil, fmt.Errorf("%w: the storage as %s has read it: %w", ErrSource, python, err)
	}
	return j.study(name)
}

// error says what to do about a fault.
func (f *storageFault) error(python string) error {
	switch f.Fault {
	case "optuna":
		return fmt.Errorf("%s cannot read the storage (%s); want a Python with Optuna 3 to 5: activate the environment that wrote the "+
			"storage, name its python by --python, or run %s -m pip install optuna", python, f.Text, python)
	case "driver":
		return fmt.Errorf("%s lacks the driver of the database; want the package %s: %s -m pip install '%s', or name by --python the one that "+
			"wrote the storage", python, f.Text, python, f.Text)
	case "server":
		return fmt.Errorf("open the storage: %s", f.Text)
	case "version":
		return fmt.Errorf("%w: %s Or name by --python the one that wrote the storage, in place of %s", ErrSource, f.Text, python)
	default:
		return fmt.Errorf("%w: %s", ErrSource, f.Text)
	}
}

// findPython returns the interpreter that is named, that of the active environment, or else the first on
// the PATH.
func findPython(named string) (string, error) {
	const want = "want a Python with Optuna, such as that of the environment that wrote the storage"
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("--python is %q: %w; %s", named, err, want)
		}
		return path, nil
	}
	var candidates []string
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if home := os.Getenv(variable); home != "" {
			candidates = append(candidates, filepath.Join(home, "bin", "python"))
		}
	}
	for _, candidate := range append(candidates, "python3", "python") {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no python3 on the PATH, and databases are read by Optuna itself; %s: activate it, or name its python "+
		"by --python", want)
}

// lastBytes is a writer that keeps the last bytes.
type lastBytes struct{ kept []byte }

// Write implements io.Writer.
func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-maxMessages):]...)
	l.kept = l.kept[max(0, len(l.kept)-maxMessages):]
	return len(p), nil
}

// line returns the last line with a text, which in Python says what the exception is.
func (l *lastBytes) line() string {
	lines := strings.Split(strings.TrimSpace(string(l.kept)), "\n")
	return lines[len(lines)-1]
}
