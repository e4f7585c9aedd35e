// Package command evaluates trials by running programs: one child process a trial, or
// one long-lived child that receives a line a trial.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/device"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

const (
	// exitRetry is the exit code that asks for a retry (EX_TEMPFAIL of sysexits.h).
	exitRetry = 75
	// defaultLogLimit is the largest size of the log of one output of one child, in
	// bytes.
	defaultLogLimit = 64 << 20
	// fullPause is how long an attempt is kept that found a full disk.
	fullPause = 5 * time.Second
)

// ErrNotAllowed means that this worker does not run commands of studies.
var ErrNotAllowed = errors.New("this worker does not run studies' commands: start it with --allow-study-commands, or " +
	"with a command of its own after --")

// Options configure how an Evaluator runs programs.
type Options struct {
	// Dir is the directory of the attempts' files: trials/<study>/<trial>/<attempt>/,
	// and streams/<study>/<slot>/ for long-lived children.
	Dir string
	// Checkpoints is the directory of checkpoints; on shared storage, an attempt can
	// continue from another worker's checkpoint. Default: Dir/checkpoints.
	Checkpoints string
	// Command is the worker's own command, which replaces the study's.
	Command []string
	// AllowStudyCommands permits the command, environment and working directory of
	// studies. Without it none of them is used: an environment can make almost any
	// program run something else.
	AllowStudyCommands bool
	// Slot counts from 0 to Slots-1.
	Slot, Slots int
	// Devices are the slot's GPUs; nil leaves the variables about them as they are.
	Devices *device.Slot
	// Environ is the worker's environment; nil means os.Environ(). Variables
	// that begin with FANTASIA_ never reach a program.
	Environ []string
	// LogLimit is the largest size of each log, in bytes; 0 means 64 MiB.
	LogLimit int64
	// Logger receives warnings about programs; nil discards them.
	Logger *slog.Logger
}

// Evaluator runs the programs of one slot. Its methods MUST NOT be called concurrently;
// it MUST be closed.
type Evaluator struct {
	options Options
	stream  *stream
}

var _ evaluation.Evaluator = (*Evaluator)(nil)

// New returns an Evaluator for one slot.
func New(o Options) (*Evaluator, error) {
	if o.Slots < 1 || o.Slot < 0 || o.Slot >= o.Slots {
		return nil, fmt.Errorf("slot %d of %d, must be 0 to one less", o.Slot, o.Slots)
	}
	if o.Dir == "" {
		return nil, errors.New("no directory for the trials' files")
	}
	o.Checkpoints = cmp.Or(o.Checkpoints, filepath.Join(o.Dir, "checkpoints"))
	// Programs may have another working directory, so the paths must be absolute.
	for _, dir := range []*string{&o.Dir, &o.Checkpoints} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return nil, fmt.Errorf("folder %q: %w", *dir, err)
		}
		*dir = abs
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	o.LogLimit = cmp.Or(o.LogLimit, defaultLogLimit)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Evaluator{options: o}, nil
}

// Accept returns why the assignment's command may not or cannot be run here.
func (e *Evaluator) Accept(a *messaging.Assignment) error {
	if a.Run.Job != nil {
		return evaluation.ErrJob
	}
	if len(e.options.Command) == 0 && !e.options.AllowStudyCommands {
		return ErrNotAllowed
	}
	if len(e.template(a)) == 0 {
		return errors.New("neither the study nor this worker has a command")
	}
	return nil
}

func (e *Evaluator) template(a *messaging.Assignment) []string {
	if len(e.options.Command) > 0 {
		return e.options.Command
	}
	return a.Run.Command
}

// argv returns the command for an attempt, with its parameters in a file.
func (e *Evaluator) argv(a *messaging.Assignment, file string) ([]string, error) {
	expand := study.ExpandCommand
	if len(e.options.Command) > 0 {
		expand = study.ExpandForeignCommand
	}
	return expand(e.template(a), a.ParameterOrder, a.Parameters, file)
}

// Evaluate runs the program for one attempt.
func (e *Evaluator) Evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	a := task.Assignment
	s, err := newSession(task, evaluation.HasFiles(e.checkpoints(a)), e.options.Logger)
	if err != nil {
		return evaluation.Failed(messaging.ReasonCommand, err.Error())
	}
	run := e.runProcess
	if a.Run.Mode == study.ModeStream {
		run = e.runStream
	} else if err := e.Close(ctx); err != nil { // of another study in stream mode
		e.options.Logger.Warn("close an idle program", telemetry.LogError, err)
	}
	ending, err := run(ctx, s)
	switch {
	case durable.Full(err):
		// The trial is not to blame. The pause keeps it from coming back again and again.
		e.options.Logger.Error("handing back a trial: there is no space on the disk for its files", telemetry.LogTrial, a.Trial,
			telemetry.LogError, err)
		backoff.Sleep(ctx, fullPause)
		ending = evaluation.StopEnding(evaluation.ErrLeaving)
		ending.Failure.Message = evaluation.Bounded("the worker's disk is full: "+err.Error(), messaging.MaxMessage)
		ending.Checkpoint = a.Checkpoint
	case err != nil:
		ending = evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage))
		ending.Checkpoint = a.Checkpoint
	}
	e.tidy(a, ending)
	return ending
}

// tidy removes the directory of checkpoints of an attempt that has ended, if the directory is empty. The
// result is sent later, so the trial's next attempt has not begun. If the attempt was cancelled, it may have.
func (e *Evaluator) tidy(a *messaging.Assignment, ending evaluation.Ending) {
	if ending.Outcome != messaging.OutcomeCancelled {
		_ = os.Remove(e.checkpoints(a)) // fails if there are any
	}
}

// newCommand prepares a program; the caller sets its environment and outputs.
func (e *Evaluator) newCommand(a *messaging.Assignment, argv []string) (*exec.Cmd, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	if e.options.AllowStudyCommands && a.Run.Workdir != "" {
		if info, err := os.Stat(a.Run.Workdir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("workdir %q is not a directory on this worker", a.Run.Workdir)
		}
		cmd.Dir = a.Run.Workdir
	}
	return cmd, nil
}

// launch starts a program for the trial with a directory, with its outputs captured.
func (e *Evaluator) launch(cmd *exec.Cmd, dir string, emit func(line report.Line, from messaging.LogStream)) (*child, *capture, error) {
	capture, err := newCapture(cmd, dir, e.options.LogLimit, emit)
	if err != nil {
		return nil, nil, err
	}
	c, err := startChild(cmd, e.options.Dir, dir)
	release(cmd)
	if err != nil {
		return nil, nil, errors.Join(errors.New(startMessage(cmd.Args, cmd.Dir, err)), capture.abandon())
	}
	capture.start()
	return c, capture, nil
}
