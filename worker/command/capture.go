package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// drain is the time that the pipes of an ended program may stay open: a process that
// left its group can hold them forever.
const drain = time.Second

// capture reads both outputs of a program.
type capture struct {
	stdout, stderr *output
	pipes          []*os.File // the ends that are read
	readers        sync.WaitGroup
}

// newCapture connects cmd's outputs to logs in dir. It calls emit for each line,
// possibly from two goroutines at once. Call start after cmd was started, or abandon if
// it was not.
func newCapture(cmd *exec.Cmd, dir string, limit int64, emit func(line report.Line, from messaging.LogStream)) (*capture, error) {
	stdout, err := newOutput(filepath.Join(dir, logfile.File(messaging.LogStdout)), limit,
		func(line report.Line) { emit(line, messaging.LogStdout) })
	if err != nil {
		return nil, err
	}
	c := &capture{stdout: stdout}
	c.stderr, err = newOutput(filepath.Join(dir, logfile.File(messaging.LogStderr)), limit,
		func(line report.Line) { emit(line, messaging.LogStderr) })
	if err != nil {
		return nil, errors.Join(err, stdout.close())
	}
	var ends []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ends)
			return nil, errors.Join(fmt.Errorf("make a pipe: %w", err), c.abandon())
		}
		c.pipes, ends = append(c.pipes, r), append(ends, w)
	}
	cmd.Stdout, cmd.Stderr = ends[0], ends[1]
	return c, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written to it
	}
}

// abandon closes everything if the program was not started.
func (c *capture) abandon() error {
	closeAll(c.pipes)
	return errors.Join(c.stdout.close(), c.stderr.close())
}

// release closes the child's ends of the pipes, in this process.
func release(cmd *exec.Cmd) {
	for _, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if f, ok := w.(*os.File); ok {
			_ = f.Close() // the child has its own
		}
	}
}

// start starts reading.
func (c *capture) start() {
	for i, o := range []*output{c.stdout, c.stderr} {
		c.readers.Go(func() {
			buffer := make([]byte, 32<<10)
			for {
				n, err := c.pipes[i].Read(buffer)
				_, _ = o.Write(buffer[:n]) // never fails
				if err != nil {
					return
				}
			}
		})
	}
}

// finish reads the rest of the program's output, waits at most drain for other
// processes that hold its pipes, and closes the logs.
func (c *capture) finish() error {
	deadline := time.Now().Add(drain)
	for _, p := range c.pipes {
		if err := p.SetReadDeadline(deadline); err != nil {
			_ = p.Close() // a reader without deadlines ends
		}
	}
	c.readers.Wait()
	closeAll(c.pipes)
	return errors.Join(c.stdout.close(), c.stderr.close())
}

// ends returns where the logs end now.
func (c *capture) ends() logfile.Ends {
	return logfile.Ends{Stdout: c.stdout.at.Load(), Stderr: c.stderr.at.Load()}
}

// lastWords returns the last lines of stderr, or of stdout if stderr is empty.
func (c *capture) lastWords() string {
	if words := c.stderr.lastWords(); words != "" {
		return words
	}
	return c.stdout.lastWords()
}
