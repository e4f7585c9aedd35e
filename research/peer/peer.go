// Package peer runs another tuner in a process of its own, which reads and writes lines of JSON.
package peer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Process is the process of a tuner. It is not safe for concurrent use.
type Process struct {
	in   io.WriteCloser
	out  *bufio.Reader
	wait func() error
}

// Start runs a script of Python with its arguments.
func Start(python string, script ...string) (*Process, error) {
	process := exec.Command(python, script...)
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", python, err)
	}
	return New(in, out, process.Wait), nil
}

// New returns a tuner that reads and writes, and that has ended once wait returns.
func New(in io.WriteCloser, out io.Reader, wait func() error) *Process {
	return &Process{in: in, out: bufio.NewReader(out), wait: wait}
}

// Send writes a message.
func (p *Process) Send(message any) error {
	if err := json.NewEncoder(p.in).Encode(message); err != nil {
		return fmt.Errorf("send to the tuner: %w", err)
	}
	return nil
}

// Receive reads an answer.
func (p *Process) Receive(answer any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the tuner has ended: %w", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return nil
}

// Ask writes a message and reads the answer.
func (p *Process) Ask(message, answer any) error {
	if err := p.Send(message); err != nil {
		return err
	}
	return p.Receive(answer)
}

// Close ends the process, which reads until its input ends.
func (p *Process) Close() error { return errors.Join(p.in.Close(), p.wait()) }
