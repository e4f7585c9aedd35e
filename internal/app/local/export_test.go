package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
)

// Read returns the study in a state directory as the last run left it, without a
// recommendation. It fails with ErrInUse while a run uses the directory, and with
// ErrNoState if no run ever has.
func Read(ctx context.Context, state string) (result *display.Result, err error) {
	if _, err := os.Stat(filepath.Join(state, etcdDir)); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", state, ErrNoState, err)
	}
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }()
	if err := Lock(state, &stack); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n := &node{o: Options{State: state}, log: slog.New(slog.DiscardHandler), stack: &stack}
	if err := n.startEtcd(ctx); err != nil {
		return nil, err
	}
	all, err := n.ledger.Studies(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", state, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read %s: %w", state, ErrNoState)
	}
	result, _, err = n.load(ctx, all[0].Study.ID)
	return result, err
}

// Follow returns what the dashboard of a Go program's study reads.
func Follow(path string) server.Reader { return &watched{kept{from: &followed{path: path}}} }
