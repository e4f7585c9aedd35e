package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// peer is a process that plays another tuner. It reads and writes lines of JSON.
type peer struct {
	in   io.WriteCloser
	out  *bufio.Reader
	wait func() error
}

func startPeer(python, script string) (*peer, error) {
	process := exec.Command(python, script)
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
	return &peer{in: in, out: bufio.NewReader(out), wait: process.Wait}, nil
}

func (p *peer) send(message any) error {
	if err := json.NewEncoder(p.in).Encode(message); err != nil {
		return fmt.Errorf("send to the tuner: %w", err)
	}
	return nil
}

func (p *peer) receive(answer any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the tuner has ended: %w", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return nil
}

// Close ends the process, which reads until its input ends.
func (p *peer) Close() error { return errors.Join(p.in.Close(), p.wait()) }
