package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// OpenEtcd starts the etcd of a state directory that no process uses, creating it if
// necessary, and returns a client of it; done ends both. It fails with ErrInUse if a
// process uses the directory.
func OpenEtcd(ctx context.Context, state string) (client *clientv3.Client, done func() error, err error) {
	var stack lifecycle.Stack
	stop := func() error { return stack.Close(closeTimeout) } //nolint:contextcheck // the end must not depend on the beginning
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	if err := Lock(state, &stack); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, client, err = StartEtcd(ctx, state, slog.New(slog.DiscardHandler), &stack); err != nil {
		return nil, nil, err
	}
	return client, stop, nil
}

// ReadEtcd is OpenEtcd for readers: if a process uses the directory, it returns a client of
// that process's etcd. It fails with ErrNoState if the directory holds no study.
func ReadEtcd(ctx context.Context, state string) (client *clientv3.Client, done func() error, err error) {
	if !isState(state) {
		return nil, nil, fmt.Errorf("read %s: %w", state, ErrNoState)
	}
	client, done, err = OpenEtcd(ctx, state)
	if !errors.Is(err, ErrInUse) {
		return client, done, err
	}
	client, errRunning := embedded.RunningEtcd(filepath.Join(state, etcdDir))
	if errRunning != nil {
		return nil, nil, errors.Join(err, errRunning)
	}
	return client, client.Close, nil
}
