// Package worker evaluates trials: it fetches assignments, claims them, runs them in
// its slots, reports their metrics, and keeps each result on disk until the leader has
// it. It does not depend on a coordinator, an optimiser or a broker, only on a
// messaging.Worker.
package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/command"
	"github.com/fantasia-hpo/fantasia/worker/device"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/family"
	"github.com/fantasia-hpo/fantasia/worker/spool"
)

// ErrStateLocked means that another process uses the worker's directory.
var ErrStateLocked = errors.New("another worker uses this directory: give each worker its own with --state")

// reserve is the part of Options.Drain reserved for publishing results.
const reserve = 2 * time.Second

// maxNames is the number of withheld variables that are logged.
const maxNames = 30

// Worker evaluates the trials of one pool. Make one with New; Run it once.
type Worker struct {
	options Options
	devices []device.Slot
}

// New checks the options and returns a worker; Run starts it.
func New(o Options) (*Worker, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	devices, err := device.Deal(o.GPUs, o.Slots, device.This())
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if o.Name == "" {
		if o.Name, err = Name(o.StateDir); err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
	}
	return &Worker{options: o, devices: devices}, nil
}

// run is the state of a running Worker.
type run struct {
	options  Options
	devices  []device.Slot
	instance string
	host     string
	environ  []string // of programs
	registry *registry
	claims   *spool.Claims
	sender   *sender
	metrics  *metrics
	files    *files
	logs     chan messaging.Control   // requests for logs
	stored   chan messaging.AttemptID // results that the leader has stored, for the Keeper
	// hard ends when the attempts' grace is over.
	hard context.Context
	// measuring ends when reports are sent no more, measurers counts the attempts
	// that still have some.
	measuring context.Context
	measurers sync.WaitGroup

	mu         sync.Mutex
	refused    map[string]struct{} // studies whose refusal was logged
	recovered  []recovered         // not yet taken by a slot
	unwritable time.Time           // when it was last logged that results cannot be written
}

// Run works until ctx ends, and then leaves: it takes no more assignments, stops
// running attempts and hands them back at no cost to their retries, and publishes the
// results. It then returns nil, within Options.Drain. It returns an error if the worker
// cannot work (ErrStateLocked, an unwritable directory, a closed bus).
func (w *Worker) Run(ctx context.Context) (err error) {
	unlock, err := lockState(w.options.StateDir)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer unlock()
	r, err := w.start()
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer func() { err = errors.Join(err, r.claims.Close()) }()
	defer r.metrics.close()

	r.recover(ctx) // before a heartbeat reports what runs

	// What serves the slots continues until they have ended.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var services sync.WaitGroup
	// Nothing is sent before its answer can be received, unless that takes long.
	listening, ready := context.WithTimeout(ctx, replyTimeout)
	services.Go(func() { r.listen(serving, ready) })
	<-listening.Done()
	services.Go(func() { r.sender.run(serving) })
	services.Go(func() { r.beat(serving) })
	services.Go(func() { r.answerLogs(serving) })
	services.Go(func() { r.markStored(serving) })
	services.Go(func() { r.files.load(serving) })
	defer services.Wait()
	defer stopServing()

	err = r.work(ctx)
	r.options.Logger.Info("worker stopped", telemetry.LogWorker, r.options.Name)
	return err
}

// lockState creates the directory and locks it.
func lockState(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the worker's directory: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the worker's directory: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("%w: %s", ErrStateLocked, dir)
	}
	return func() { _ = lock.Unlock() }, nil // the end of the process unlocks too
}

// spoolDir returns the directory of a worker's results.
func spoolDir(stateDir string) string { return filepath.Join(stateDir, "spool") }

func (w *Worker) start() (*run, error) {
	o := w.options
	results, unreadable, err := spool.Open(spoolDir(o.StateDir))
	if err != nil {
		return nil, err
	}
	for _, what := range unreadable {
		o.Logger.Warn("moved an unreadable file out of the spool", telemetry.LogReason, what)
	}
	claims, err := spool.OpenClaims(filepath.Join(o.StateDir, "claims"))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	r := &run{
		options: o, devices: w.devices, instance: randomText(), host: host,
		registry: &registry{
			running: map[messaging.AttemptID]runningAttempt{}, waiting: map[messaging.AttemptID]string{}, begun: map[messaging.AttemptID]bool{},
			avoided: map[string]struct{}{},
			changed: make(chan struct{}, 1), since: time.Now(),
		},
		claims: claims, sender: newSender(o, results),
		refused: map[string]struct{}{}, logs: make(chan messaging.Control, maxLogRequests), stored: make(chan messaging.AttemptID, maxStored),
	}
	r.files = newFiles(o, r.sender)
	if o.NewEvaluator == nil {
		if n := family.KillOrphans(o.StateDir); n > 0 {
			o.Logger.Warn("killed processes left behind by a previous run", "processes", n)
		}
		r.environ = environment(o)
	}
	if r.metrics, err = newMetrics(o, r); err != nil {
		return nil, errors.Join(err, claims.Close())
	}
	o.Logger.Info("worker started", telemetry.LogWorker, o.Name, telemetry.LogPool, o.Pool,
		"slots", o.Slots, "spooled", results.Len(), "state", o.StateDir)
	return r, nil
}

// environment returns the variables of this process that programs get.
func environment(o Options) []string {
	kept, withheld := command.PassEnv(os.Environ(), o.PassEnv)
	if n := len(withheld); n > 0 {
		o.Logger.Info("programs do not get all variables of the worker; --pass-env passes more",
			"variables", n, "names", strings.Join(withheld[:min(n, maxNames)], ","))
	}
	return kept
}

// work runs the slots until ctx ends or one cannot continue, and then leaves.
func (r *run) work(ctx context.Context) error {
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	r.hard = hard
	measuring, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.measuring = measuring
	defer func() {
		stop()
		r.measurers.Wait()
	}()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var slots sync.WaitGroup
	var once sync.Once
	var failure error
	for n := range r.options.Slots {
		slots.Go(func() {
			if err := r.slot(ctx, n); err != nil {
				once.Do(func() { failure = err })
				fail(err)
			}
		})
	}
	<-ctx.Done()
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.Drain)
	defer cancel()
	r.registry.leave()
	patience := time.AfterFunc(max(r.options.Drain-reserve, r.options.Drain/2), kill)
	defer patience.Stop()
	slots.Wait()
	if errors.Is(failure, messaging.ErrClosed) {
		return failure // nothing can be published
	}
	if err := r.sender.flush(deadline); err != nil {
		r.options.Logger.Warn("some results are not published yet; the next start sends them from disk",
			"results", r.sender.len(), "state", r.options.StateDir)
	}
	r.flushMeasurements(deadline)
	return failure
}

// flushMeasurements waits, until ctx ends, for the reports that are still to be sent.
func (r *run) flushMeasurements(ctx context.Context) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.measurers.Wait()
	}()
	select {
	case <-sent:
	case <-ctx.Done():
		r.options.Logger.Warn("lost reports that could not be sent before the worker stopped")
	}
}

// evaluator returns the evaluator of a slot.
func (r *run) evaluator(slot int) (evaluation.Evaluator, error) {
	o := r.options
	if o.NewEvaluator != nil {
		return o.NewEvaluator(slot)
	}
	c := command.Options{
		Dir: o.StateDir, Checkpoints: o.Checkpoints, Command: o.Command, AllowStudyCommands: o.AllowStudyCommands,
		Slot: slot, Slots: o.Slots, Environ: r.environ, Logger: o.Logger,
	}
	if r.devices != nil {
		c.Devices = &r.devices[slot]
	}
	return command.New(c)
}

// FlushSpool publishes, once each, the results that a worker left in its directory, and
// returns their number. They stay there until a running worker gets their receipts. A
// process that contains a coordinator and a worker calls it before its coordinator
// takes over, so that no result is missed.
func FlushSpool(ctx context.Context, bus messaging.Worker, stateDir string) (int, error) {
	unlock, err := lockState(stateDir)
	if err != nil {
		return 0, fmt.Errorf("flush the spool: %w", err)
	}
	defer unlock()
	results, _, err := spool.Open(spoolDir(stateDir))
	if err != nil {
		return 0, fmt.Errorf("flush the spool: %w", err)
	}
	for n, r := range results.Results() {
		if err := bus.PublishResult(ctx, r); err != nil {
			return n, fmt.Errorf("flush the spool: publish trial %d attempt %d: %w", r.Trial, r.Attempt, err)
		}
	}
	return results.Len(), nil
}
