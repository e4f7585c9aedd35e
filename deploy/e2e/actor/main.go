// Command actor is a training program for end-to-end tests that follows its flags: it
// reports the square of the parameter x at each step on stdout, into the file
// FANTASIA_REPORT, over HTTP or in TensorFlow's event files, fills memory or a folder, and ends as requested. On
// SIGTERM it leaves a checkpoint and exits with 0, or with --told. With --stream it does so for one trial after
// another. With --epochs it trains so many epochs, from
// the one on that is saved in FANTASIA_CHECKPOINT_DIR.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	page  = 4096
	retry = 75 // EX_TEMPFAIL: run it again
)

// play holds what the flags ask for.
type play struct {
	report string
	events string // folder of event files
	steps  int
	epochs int
	pause  time.Duration
	memory int    // MiB
	disk   string // folder to fill
	exit   int
	told   int // exit code on SIGTERM
	x      float64
	client *http.Client
	id     string // of the trial, over HTTP
	stream bool
}

func main() {
	p := play{client: &http.Client{Timeout: time.Minute}}
	flag.StringVar(&p.report, "report", "stdout", "stdout, file, http, events or none")
	flag.StringVar(&p.events, "events", "", "folder of the event files (logs in FANTASIA_TRIAL_DIR)")
	flag.IntVar(&p.steps, "steps", 1, "reports")
	flag.IntVar(&p.epochs, "epochs", 0, "epochs to reach, with a checkpoint after each")
	flag.DurationVar(&p.pause, "pause", 0, "time before each report")
	flag.IntVar(&p.memory, "memory", 0, "memory to fill first, in MiB")
	flag.StringVar(&p.disk, "disk", "", "folder in which to write 16 MiB first")
	flag.IntVar(&p.exit, "exit", 0, "exit code")
	flag.IntVar(&p.told, "told", 0, "exit code when it is told to end")
	flag.BoolVar(&p.stream, "stream", false, "evaluate one trial after another, each from a line of stdin")
	flag.Parse()
	run := p.run
	if p.stream {
		run = p.serve
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(3)
	}
	os.Exit(p.exit)
}

func (p *play) run() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var err error
	if p.x, err = strconv.ParseFloat(os.Getenv("FANTASIA_PARAM_X"), 64); err != nil {
		return fmt.Errorf("FANTASIA_PARAM_X: %w", err)
	}
	if p.epochs > 0 {
		return p.train(stop)
	}
	ballast := make([]byte, p.memory<<20)
	for i := 0; i < len(ballast); i += page {
		ballast[i] = 1
	}
	if p.disk != "" {
		if err := os.WriteFile(filepath.Join(p.disk, "ballast"), make([]byte, 16<<20), 0o600); err != nil {
			return err
		}
	}
	if p.report == "http" {
		if err := p.next(); err != nil {
			return err
		}
	}
	for step := 1; step <= p.steps; step++ {
		select {
		case <-stop:
			fmt.Printf(`{"fantasia": {"checkpoint": "step-%d"}}`+"\n", step-1)
			p.exit = p.told
			return nil
		case <-time.After(p.pause):
		}
		if err := p.tell(step); err != nil {
			return err
		}
	}
	fmt.Println("played with", len(ballast)>>20, "MiB")
	if p.report == "http" {
		return p.post("complete", map[string]any{"id": p.id}, nil)
	}
	return nil
}

// serve evaluates a trial for each line of stdin, until its end.
func (p *play) serve() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var line struct {
			Fantasia struct {
				Trial      int
				Parameters struct{ X float64 }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return err
		}
		trial, x := line.Fantasia.Trial, line.Fantasia.Parameters.X
		for step := 1; step <= p.steps; step++ {
			time.Sleep(p.pause)
			fmt.Printf(`{"fantasia": {"trial": %d, "step": %d, "metrics": {"error": %v}, "done": %v}}`+"\n", trial, step, x*x, step == p.steps)
		}
	}
	return lines.Err()
}

// train reports x² + 1/epoch after each epoch, and in which epoch it began. What it is asked
// to stop in the middle of, it does not begin again.
func (p *play) train(stop <-chan os.Signal) error {
	state := filepath.Join(os.Getenv("FANTASIA_CHECKPOINT_DIR"), "epoch")
	began := 0
	if text, err := os.ReadFile(state); err == nil {
		if began, err = strconv.Atoi(string(text)); err != nil {
			return err
		}
	}
	report := func(epoch int) {
		fmt.Printf(`{"fantasia": {"step": %d, "metrics": {"error": %v, "began": %d}, "checkpoint": "epoch-%d"}}`+"\n", epoch,
			p.x*p.x+1/float64(epoch), began, epoch)
	}
	for epoch := began + 1; epoch <= p.epochs; epoch++ {
		select {
		case <-stop:
			p.exit = retry
			return nil
		case <-time.After(p.pause):
		}
		if err := os.WriteFile(state+".new", []byte(strconv.Itoa(epoch)), 0o600); err != nil {
			return err
		}
		if err := os.Rename(state+".new", state); err != nil {
			return err
		}
		report(epoch)
	}
	if began == p.epochs { // it was stopped after its last epoch
		report(began)
	}
	return nil
}

// tell reports a step.
func (p *play) tell(step int) error {
	line := fmt.Sprintf(`{"fantasia": {"step": %d, "metrics": {"error": %v}}}`, step, p.x*p.x)
	switch p.report {
	case "stdout":
		fmt.Println(line)
		return nil
	case "file":
		f, err := os.OpenFile(os.Getenv("FANTASIA_REPORT"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, line)
		return errors.Join(err, f.Close())
	case "events":
		return p.record(step)
	case "http":
		return p.post("report", map[string]any{"id": p.id, "step": step, "metrics": map[string]float64{"error": p.x * p.x}}, nil)
	}
	return nil
}

// next asks for the trial, whose x must match the environment's.
func (p *play) next() error {
	var trial struct {
		ID         string
		Parameters struct{ X float64 }
	}
	if err := p.post("next", map[string]any{}, &trial); err != nil {
		return err
	}
	if p.id = trial.ID; trial.Parameters.X != p.x {
		return fmt.Errorf("next says x=%v, the environment %v", trial.Parameters.X, p.x)
	}
	return nil
}

func (p *play) post(what string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := p.client.Post(os.Getenv("FANTASIA_SIDECAR")+"/v1/"+what, "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read
	data, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", what, resp.Status, data)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}
