package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/study"
)

// Resume has an ended study in a state directory go on when it is run or served again: see
// coordinator.Resume. No process may have the directory open. name may be the study's id, and is "" for
// the only study. The error wraps study.ErrNotFound or study.ErrPrecondition if the study cannot go on.
func Resume(ctx context.Context, state, name, version string) error {
	if journal.Is(state) {
		return fmt.Errorf("%w: %s is the file of a Go program: its study goes on when the program calls Run again", study.ErrPrecondition, state)
	}
	return lead(ctx, state, name, version, func(ctx context.Context, c *coordinator.Coordinator, id string) error { return c.Resume(ctx, id) })
}

// Continue adds a trial that runs a trial to its end which was stopped early, when the study is run or served again, and returns its
// number. Otherwise it is like Resume.
func Continue(ctx context.Context, state, name string, trial int, version string) (number int, err error) {
	if journal.Is(state) {
		return 0, fmt.Errorf("%w: %s is the file of a Go program: call Study.Continue in it", study.ErrPrecondition, state)
	}
	err = lead(ctx, state, name, version, func(ctx context.Context, c *coordinator.Coordinator, id string) error {
		told, err := c.Tell(ctx, id, func(now time.Time) engine.Event {
			return engine.Enqueue{At: now, Continues: trial, RequestID: rand.Text()}
		})
		number = told.Number
		return err
	})
	return number, err
}

// lead opens a state directory, and calls change with a coordinator that leads and the id of the study.
func lead(
	ctx context.Context, state, name, version string, change func(ctx context.Context, c *coordinator.Coordinator, id string) error,
) (err error) {
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }() //nolint:contextcheck // the end must not depend on the beginning
	nothing := &study.Study{Spec: study.Spec{Pool: study.DefaultPool}}   // nothing is evaluated
	n, err := open(ctx, Options{Study: nothing, State: state, Version: version, Level: slog.LevelInfo}, &stack)
	if err != nil {
		return err
	}
	all, err := n.ledger.Studies(ctx)
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	i := slices.IndexFunc(all, func(s ledger.Summary) bool {
		return name == "" || s.Study.ID == name || s.Study.Definition.Metadata.Name == name
	})
	if i < 0 {
		return fmt.Errorf("%w: study %q is not in %s", study.ErrNotFound, name, state)
	}
	if all[i].Err != nil {
		return n.damaged(all[i].Err)
	}
	c, err := coordinator.New(n.options())
	if err != nil {
		return err
	}
	leading, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(leading) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if err := n.lead(ctx, c); err != nil {
		return err
	}
	return change(ctx, c, all[i].Study.ID)
}
