// Package local runs one study in this process: etcd, NATS, a coordinator and a worker,
// without opening a network port, except for a dashboard where one is asked for, and for workers of
// other processes (Remote). Everything is kept in a state directory; running the same study on it
// again continues it.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

var (
	// ErrInterrupted means that the context ended before the study did. The running
	// trials have been handed back; running again continues the study.
	ErrInterrupted = errors.New("interrupted")
	// ErrIncompatible means that the state directory holds another study, or one that
	// the changed study file does not fit.
	ErrIncompatible = coordinator.ErrIncompatible
)

const (
	// progressEvery is the interval between calls of Options.Progress.
	progressEvery = 200 * time.Millisecond
	// closeTimeout limits each step of closing.
	closeTimeout = 20 * time.Second
	// startTimeout limits the start of etcd, NATS and the coordinator.
	startTimeout = 60 * time.Second
	// resultTimeout limits reading the results: a slow machine takes a minute for 50,000 trials.
	resultTimeout = 10 * time.Minute
	// obstacleTimeout limits the question why a start has failed.
	obstacleTimeout = 2 * time.Second
	workerName      = "local"
	// etcdDir is the subdirectory of the state directory that keeps the study.
	etcdDir = "etcd"
)

// Trials reads the trials of a study that runs.
type Trials func(context.Context) ([]record.Trial, error)

// Options specify what to run and where. Study and State are required.
type Options struct {
	Study *study.Study
	// State is the directory that keeps everything.
	State string
	// Learn adds further earlier studies to Study when the run begins. begun is nil, or the study as a run that
	// continues has begun it, which learns from nothing else. A nil Learn adds none.
	Learn func(s, begun *study.Study) (*study.Study, error)
	// Workers is how many trials are evaluated at once; 0 means the study's parallelism.
	Workers int
	// GPUs is "auto", "none", or a list of devices such as "0,1".
	GPUs string
	// KeepTrials is how many bytes the files of ended trials in State may take; 0 means that all are
	// kept. The files of the best trial and of recommended trials are always kept.
	KeepTrials int64
	// Version is the software's, for telemetry.
	Version string
	// Level is the lowest level that is logged to State/fantasia.log.
	Level slog.Level
	// Progress is called a few times a second, from one goroutine; nil disables it. It may read the study's trials, also later
	// in another goroutine, as long as the context lasts with which Run was called.
	Progress func(p coordinator.Progress, trials Trials)
	// Ended is called when the study has ended or is interrupted, before its results are read; it may be nil.
	Ended func()
	// UI is where the dashboard is served while the study runs; nil serves none. Run closes
	// it.
	UI net.Listener
	// Shown is called once the dashboard is served; it may be nil.
	Shown func()
	// Curves returns the numbers of the trials whose curves the result must have; nil
	// means none.
	Curves func(*display.Result) []int
	// Evaluator returns the evaluator of trials for one slot; nil runs the study's
	// command.
	Evaluator func(slot int) (evaluation.Evaluator, error)
	// Remote has workers of other processes evaluate the trials; nil means that this process does.
	Remote *Remote
}

// Run runs a study to its end. If ctx ends first, it hands back the running trials and
// returns the result so far with ErrInterrupted.
func Run(ctx context.Context, o Options) (result *display.Result, err error) {
	o.Workers = cmp.Or(o.Workers, o.Study.Spec.Parallelism)
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout), o.closeUI()) }()
	n, err := open(ctx, o, &stack)
	if err == nil {
		result, err = n.run(ctx)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrInterrupted) { // interrupted while starting
		err = fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	return result, err
}

// open locks the state directory and starts everything that a run needs.
func open(ctx context.Context, o Options, stack *lifecycle.Stack) (*node, error) {
	if err := Lock(o.State, stack); err != nil {
		return nil, err
	}
	tel, err := OpenTelemetry(ctx, o.State, o.Version, o.Level, stack)
	if err != nil {
		return nil, err
	}
	n := &node{o: o, tel: tel, log: tel.Logger(), stack: stack}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return n.startEtcd(ctx) })
	g.Go(n.startNATS)
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return n, nil
}

// existing returns the study in the state directory, nil if there is none. It fails if
// the study file is incompatible with it.
func (n *node) existing(ctx context.Context) (*ledger.Summary, error) {
	all, err := n.ledger.Studies(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	if len(all) == 0 {
		return nil, nil
	}
	old := &all[0]
	if old.Err != nil {
		return nil, n.damaged(fmt.Errorf("read the state: %w", old.Err))
	}
	if name := n.o.Study.Metadata.Name; old.Study.Definition.Metadata.Name != name {
		return nil, fmt.Errorf("%w: %s holds study %q, not %q", ErrIncompatible, n.o.State, old.Study.Definition.Metadata.Name, name)
	}
	if differences := study.Compatible(&old.Study.Definition, n.o.Study); len(differences) > 0 {
		return nil, &Changed{State: n.o.State, Differences: differences}
	}
	return old, nil
}

// Changed lists the fields of a study file that do not fit the state that it would
// continue. It is an ErrIncompatible.
type Changed struct {
	State       string
	Differences []string
}

// Error lists the differences, one a line.
func (c *Changed) Error() string {
	s := fmt.Sprintf("%v in %s:", ErrIncompatible, c.State)
	for _, d := range c.Differences {
		s += "\n  " + d
	}
	return s
}

// Is makes a Changed an ErrIncompatible.
func (c *Changed) Is(target error) bool { return target == ErrIncompatible }

// options returns the options of the embedded coordinator.
func (n *node) options() coordinator.Options {
	o := inject.Coordinator(coordinator.DefaultOptions())
	o.Name = "local"
	o.Etcd, o.Bus = n.etcd, n.leader
	o.HandBack, o.LeaseTTL = n.o.Remote == nil, SoleLease // workers of other processes may be running still
	o.Logger, o.Tracer, o.Exports, o.Meter = n.log, n.tel.Tracer(), n.tel.Exports(), n.tel.Meter()
	return o
}
