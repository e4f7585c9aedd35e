// Command sidecar is a training program that keeps its own loop: it loads its
// data once, and trains one model after another with the hyperparameters that
// `worker sidecar` beside it hands out over HTTP.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// patience is how long the sidecar may take to answer after a signal.
const patience = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidecar-example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	l := loop{client: client{base: "http://127.0.0.1:7070"}, out: out}
	if url := os.Getenv("SIDECAR_URL"); url != "" {
		l.client.base = url
	}
	flags := flag.NewFlagSet("sidecar-example", flag.ContinueOnError)
	flags.StringVar(&l.client.name, "client", "", "this loop's name, where several share a sidecar")
	flags.IntVar(&l.epochs, "epochs", 20, "passes over the data")
	flags.DurationVar(&l.slow, "slow", 50*time.Millisecond, "what an epoch takes longer than it needs")
	abrupt := flags.Bool("abrupt", false, "end at SIGTERM without a word, as many programs do")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	if *abrupt {
		signal.Reset(syscall.SIGTERM)
	}
	l.data = spirals()
	for ctx.Err() == nil {
		t, err := l.client.next(ctx)
		if err != nil || ctx.Err() != nil {
			return unlessLeaving(ctx, err)
		}
		if err := l.train(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// unlessLeaving returns err, or nil if the loop was told to end.
func unlessLeaving(ctx context.Context, err error) error {
	if errors.Is(err, errLeaving) || ended(ctx) {
		return nil
	}
	return err
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// loop is what stays from trial to trial.
type loop struct {
	client client
	data   []point
	epochs int
	slow   time.Duration
	out    io.Writer
}

// event is a line that the program logs.
type event struct {
	Study   string    `json:"study"`
	Trial   int       `json:"trial"`
	Attempt int       `json:"attempt"`
	Ended   bool      `json:"ended"`
	Epoch   int       `json:"epoch"`
	Value   *float64  `json:"value,omitempty"`
	Time    time.Time `json:"time"`
}

func (l *loop) log(t *trial, e event) {
	e.Study, e.Trial, e.Attempt, e.Time = t.Study, t.Trial, t.Attempt, time.Now()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidecar-example: log:", err)
	}
}

// train trains one model, reports its error after each epoch, and stops early
// with a checkpoint where the sidecar or a signal says so.
func (l *loop) train(ctx context.Context, t *trial) error {
	// What is said at the end is said after a signal, too.
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })()
	epochs := l.epochs
	if n, ok := t.Parameters["epochs"]; ok { // the study has a fidelity, whose best trials go on with more
		epochs = int(n)
	}
	m := newModel(t.Parameters["learning_rate"], t.Parameters["weight_decay"], t.Seed)
	epoch := m.resume(t.Checkpoint)
	l.log(t, event{Epoch: epoch})
	for epoch < epochs {
		m.epoch(l.data)
		epoch++
		wait(ctx, l.slow)
		value := m.loss(l.data)
		if math.IsNaN(value) || math.IsInf(value, 0) { // JSON has no such numbers
			return l.client.complete(last, t, map[string]any{"infeasible": "the training diverged"})
		}
		stop, err := l.client.report(last, t, epoch, map[string]float64{"loss": value})
		if err != nil {
			return err
		}
		if (stop || ctx.Err() != nil) && epoch < epochs { // after the last epoch there is a value
			return l.handBack(last, t, m, epoch)
		}
	}
	value := m.loss(l.data)
	more := map[string]any{}
	if err := save(t, m, epoch, more); err != nil {
		return err
	}
	// Logged before the sidecar is told: once it is, the value counts, whoever is killed then.
	l.log(t, event{Ended: true, Epoch: epoch, Value: &value})
	return l.client.complete(last, t, more)
}

// handBack asks for the trial to be run elsewhere, from here on where there is
// shared storage.
func (l *loop) handBack(ctx context.Context, t *trial, m *model, epoch int) error {
	more := map[string]any{"retry": "stopped in the middle"}
	if err := save(t, m, epoch, more); err != nil {
		return err
	}
	return l.client.complete(ctx, t, more)
}

// save saves the model where there is a place for it, and adds that to what the sidecar is told.
func save(t *trial, m *model, epoch int, more map[string]any) error {
	if t.CheckpointDir == "" {
		return nil
	}
	path := filepath.Join(t.CheckpointDir, "model.json")
	more["checkpoint"] = path
	return m.save(path, epoch)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
