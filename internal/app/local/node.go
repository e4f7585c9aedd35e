package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// node holds everything that a run needs.
type node struct {
	o     Options
	tel   *telemetry.Telemetry
	log   *slog.Logger
	stack *lifecycle.Stack

	etcd   *clientv3.Client
	ledger *ledger.Ledger
	leader messaging.Leader
	worker messaging.Worker // nil with Options.Remote
}

func (n *node) startEtcd(ctx context.Context) (err error) {
	if _, n.etcd, err = StartEtcd(ctx, n.o.State, n.log, n.stack); err != nil {
		return err
	}
	n.ledger = ledger.New(n.etcd, ledger.Options{})
	return nil
}

func (n *node) startNATS() error {
	if n.o.Remote != nil {
		return n.startRemoteNATS()
	}
	server, err := StartNATS(n.o.State, n.log, n.stack)
	if err != nil {
		return err
	}
	if n.leader, err = ConnectLeader(server, nil, n.stack); err != nil {
		return err
	}
	n.worker, err = connectBus(server, workerName, n.stack, func(c *nats.Conn) (messaging.Worker, error) {
		return natsbus.NewWorker(c, natsbus.WorkerOptions{Name: workerName, Pool: n.o.Study.Spec.Pool})
	})
	return err
}

// run starts the coordinator and the worker, waits for the study's end, and stops both.
func (n *node) run(ctx context.Context) (*display.Result, error) {
	old, err := n.existing(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.learn(old); err != nil {
		return nil, err
	}
	if old != nil && old.Status.State != study.Running && sameBudget(&old.Study.Definition, n.o.Study) {
		result, err := n.result(ctx, old.Study.ID)
		if result != nil {
			result.AlreadyEnded = true
		}
		return result, err
	}
	// Report the results of the last run before anything is handed back. NATS may be a new one.
	if err := n.leader.Setup(ctx, []string{study.DefaultPool}); err != nil {
		return nil, fmt.Errorf("set the streams up: %w", err)
	}
	if n.o.Remote == nil {
		if _, err := worker.FlushSpool(ctx, n.worker, n.workerDir()); err != nil && old != nil {
			return nil, fmt.Errorf("send the last run's results: %w", err)
		}
	}
	c, err := coordinator.New(n.options())
	if err != nil {
		return nil, err
	}
	work, err := n.workers(c) //nolint:contextcheck // trials may end after ctx
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	defer running.Wait()
	coordinating, stopCoordinator := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCoordinator()
	failed := make(chan error, 2)
	running.Go(func() { failed <- c.Run(coordinating) })
	id, err := n.study(ctx, c, old)
	if err != nil {
		return nil, err
	}
	if err := n.answer(); err != nil {
		return nil, err
	}
	if n.o.UI != nil {
		if err := n.pages(c); err != nil { //nolint:contextcheck // it ends with the stack
			return nil, err
		}
	}
	var working sync.WaitGroup
	workCtx, stopWorker := context.WithCancel(ctx)
	working.Go(func() { failed <- work(workCtx) })
	err = n.await(ctx, c, id, failed)
	stopWorker()
	working.Wait()
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, err
	}
	if err == nil { // the results need the memory of the study's engine
		stopCoordinator()
		running.Wait()
	}
	result, errResult := n.result(context.WithoutCancel(ctx), id)
	if result != nil {
		result.Interrupted = err != nil
	}
	return result, errors.Join(err, errResult)
}

// workers returns what evaluates the trials until its context ends.
func (n *node) workers(c *coordinator.Coordinator) (func(context.Context) error, error) {
	if r := n.o.Remote; r != nil {
		return func(ctx context.Context) error { return r.Run(ctx, c, n.log) }, nil
	}
	w, err := n.newWorker(c)
	if err != nil {
		return nil, err
	}
	return w.Run, nil
}

// sameBudget reports whether an ended study stays ended under a study file.
func sameBudget(old, now *study.Study) bool {
	a, b := old.Spec, now.Spec
	return a.Budget == b.Budget && reflect.DeepEqual(a.Limits, b.Limits) && (a.Objective.Goal == nil) == (b.Objective.Goal == nil) &&
		(a.Objective.Goal == nil || *a.Objective.Goal == *b.Objective.Goal) &&
		reflect.DeepEqual(a.Goal, b.Goal) && reflect.DeepEqual(a.Several, b.Several)
}

// learn adds the earlier studies of Options.Learn to the study.
func (n *node) learn(old *ledger.Summary) (err error) {
	if n.o.Learn == nil {
		return nil
	}
	var begun *study.Study
	if old != nil {
		begun = &old.Study.Definition
	}
	n.o.Study, err = n.o.Learn(n.o.Study, begun)
	return err
}

// study creates the study, or updates the one in the state.
func (n *node) study(ctx context.Context, c *coordinator.Coordinator, old *ledger.Summary) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := n.lead(ctx, c); err != nil {
		return "", err
	}
	if old != nil {
		if err := c.Update(ctx, old.Study.ID, n.o.Study, 0); err != nil {
			return "", fmt.Errorf("continue the study: %w", err)
		}
		return old.Study.ID, nil
	}
	learns, err := coordinator.Learn(ctx, n.o.Study, func(name string) (*ledger.Ledger, func(), error) { return n.earlier(ctx, name) })
	if err != nil {
		return "", err
	}
	created, err := c.Create(ctx, learns)
	if err != nil {
		return "", err
	}
	return created.ID, nil
}

// earlier opens the ledger of an earlier study: the state of its run lies beside this one's.
func (n *node) earlier(ctx context.Context, name string) (l *ledger.Ledger, done func(), err error) {
	state := filepath.Join(filepath.Dir(filepath.Clean(n.o.State)), name)
	client, end, err := ReadEtcd(ctx, state)
	if errors.Is(err, ErrNoState) {
		return nil, nil, study.NewError(study.ErrNotFound, "there is no run in "+state)
	}
	if err != nil {
		return nil, nil, err
	}
	return ledger.New(client, ledger.Options{}), func() { _ = end() }, nil // nothing was written
}

// lead waits until the coordinator leads.
func (n *node) lead(ctx context.Context, c *coordinator.Coordinator) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := c.Leading(ctx)
	if err == nil {
		return nil
	}
	why, cancel := context.WithTimeout(context.WithoutCancel(ctx), obstacleTimeout)
	defer cancel()
	return fmt.Errorf("wait for the coordinator to lead: %w", errors.Join(err, c.Obstacle(why)))
}

// await reports progress until the study has ended, ctx ends, or a part fails.
func (n *node) await(ctx context.Context, c *coordinator.Coordinator, id string, failed <-chan error) error {
	trials := func(ctx context.Context) ([]record.Trial, error) {
		stored, err := n.ledger.LoadStudy(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read the study's trials: %w", err)
		}
		return stored.Trials, nil
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ErrInterrupted
		case err := <-failed:
			if ctx.Err() != nil {
				return ErrInterrupted
			}
			return errors.Join(errors.New("the run has stopped unexpectedly; see fantasia.log in the state directory"), err)
		case <-tick.C:
		}
		p, err := c.Progress(ctx, id)
		if errors.Is(err, coordinator.ErrNotLeader) || ctx.Err() != nil {
			continue // between two terms
		}
		if err != nil {
			return fmt.Errorf("read the study's progress: %w", err)
		}
		if n.o.Progress != nil {
			n.o.Progress(*p, trials)
		}
		if p.Status.State.Terminal() {
			return nil
		}
	}
}
