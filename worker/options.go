package worker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/command"
	"github.com/fantasia-hpo/fantasia/worker/device"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// MaxSlots is the largest number of slots: a heartbeat names all attempts that run and up
// to maxSpooled others, and must fit into a message.
const MaxSlots = 1500

// Options configure a Worker. Start from DefaultOptions.
type Options struct {
	// Name is the worker's name, a part of its subjects (messaging.ValidWorker). It
	// MUST be the name that Bus was made for. Empty means Name(StateDir).
	Name string
	// Pool is the pool whose assignments the worker takes.
	Pool string
	// Slots is the number of attempts that it evaluates at once, at most MaxSlots.
	Slots int
	// GPUs are divided among the slots: "auto" uses all of the machine's, "none" hides
	// them, "0,1" uses these (device.Deal).
	GPUs string
	// Site is where the batch system runs this worker; claims and results say it.
	Site messaging.Site
	// StateDir is the worker's own directory: spool, journal of claims, the files of
	// attempts. Workers MUST NOT share one.
	StateDir string
	// Checkpoints is the directory of checkpoints; empty means one in StateDir. On
	// shared storage, attempts can continue where another worker stopped.
	Checkpoints string
	// KeepTrials bounds, in bytes, what attempts that have ended leave in StateDir: their
	// folders and the logs of long-lived programs. Beyond it, those that ended first are
	// removed (logfile.Keeper). 0 keeps all of them.
	KeepTrials int64
	// Spared returns attempts that KeepTrials leaves alone although they have ended; an attempt of 0 stands
	// for all attempts of the trial. nil spares none. It is called when something has to be removed; if it fails,
	// nothing is.
	Spared func() ([]messaging.AttemptID, error)
	// Command is the program that evaluates every trial; it replaces the studies' own.
	Command []string
	// AllowStudyCommands permits the command, environment and working directory of
	// studies.
	AllowStudyCommands bool
	// PassEnv are variables of this process that programs get besides those that they need
	// to run on this machine; NAME* stands for all names that begin with NAME (see
	// command.PassEnv).
	PassEnv []string
	// NewEvaluator returns the evaluator of a slot (0 to Slots-1); nil runs programs.
	NewEvaluator func(slot int) (evaluation.Evaluator, error)
	// StudyJobs says that the evaluators accept studies that bring a Job, and JobsOnly
	// that they accept no others.
	StudyJobs, JobsOnly bool
	// Runs is what the evaluators of NewEvaluator run, as heartbeats say it: a token such
	// as messaging.RunsSidecar, or empty. Programs are messaging.RunsCommand.
	Runs string
	// Keeper manages evaluations that an earlier process of this worker started; nil if
	// they end with the process.
	Keeper evaluation.Keeper
	// NoLogs says why this worker has no logs of attempts, for whoever asks for one;
	// empty where the programs that it runs have logs in StateDir.
	NoLogs string
	// Bus carries the messages. The worker does not close it.
	Bus messaging.Worker
	// Logger, Tracer and Meter may be nil.
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
	// Software is the program's name and version in heartbeats.
	Software string

	// HeartbeatInterval is the time between heartbeats.
	HeartbeatInterval time.Duration
	// ResendInterval is the time after which a result without a receipt is sent again.
	// It doubles each time, up to a minute.
	ResendInterval time.Duration
	// Drain limits the time that Run takes to end after its context has ended.
	Drain time.Duration
	// SpoolLimit is the number of unacknowledged results at which the worker stops
	// taking assignments.
	SpoolLimit int
}

// DefaultOptions returns the options of a worker with one slot in the pool
// study.DefaultPool. A Bus must be added.
func DefaultOptions() Options {
	return Options{
		Pool:              study.DefaultPool,
		Slots:             1,
		GPUs:              device.Auto,
		StateDir:          filepath.Join(".fantasia", "worker"),
		Software:          "fantasia",
		HeartbeatInterval: 5 * time.Second,
		ResendInterval:    5 * time.Second,
		Drain:             25 * time.Second, // Kubernetes kills a pod after 30 s
		SpoolLimit:        10_000,
		KeepTrials:        10 << 30,
	}
}

// validate checks the options and sets defaults.
func (o *Options) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.Name == "" || messaging.ValidWorker(o.Name),
		"name %q, must be a name, or a pool and a name with a dot between, each 1 to %d of A-Z a-z 0-9 - _", o.Name, messaging.MaxToken)
	check(o.Name != messaging.LeaderName, "name %q is reserved", o.Name)
	check(messaging.ValidToken(o.Pool), "pool %q, must be 1 to %d of A-Z a-z 0-9 - _", o.Pool, messaging.MaxToken)
	check(o.Slots >= 1 && o.Slots <= MaxSlots, "slots %d, must be 1 to %d; run more workers for more", o.Slots, MaxSlots)
	check(o.StateDir != "", "state: the worker needs its own directory")
	check(o.Runs == "" || messaging.ValidToken(o.Runs), "runs %q, must be 1 to %d of A-Z a-z 0-9 - _", o.Runs, messaging.MaxToken)
	check(o.Bus != nil, "the worker needs a bus")
	check(o.HeartbeatInterval > 0, "heartbeat interval %s, must be positive", o.HeartbeatInterval)
	check(o.ResendInterval > 0, "resend interval %s, must be positive", o.ResendInterval)
	check(o.Drain > 0, "drain %s, must be positive", o.Drain)
	check(o.KeepTrials >= 0, "bytes of ended trials to keep %d, must be positive, or 0 for all", o.KeepTrials)
	check(o.SpoolLimit >= 1, "spool limit %d, must be at least 1", o.SpoolLimit)
	if err := command.CheckPassEnv(o.PassEnv); err != nil {
		errs = append(errs, fmt.Errorf("variables to pass: %w", err))
	}
	if len(errs) > 0 {
		return fmt.Errorf("worker: %w", errors.Join(errs...))
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Tracer == nil {
		o.Tracer = nooptrace.NewTracerProvider().Tracer("")
	}
	if o.Meter == nil {
		o.Meter = noopmetric.NewMeterProvider().Meter("")
	}
	return nil
}
