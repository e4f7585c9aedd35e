package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// etcdPatience is how long a request waits for etcd, whose client would wait for as
	// long as the caller does.
	etcdPatience = 4 * time.Second
	// pingEvery is the pause between the pings of etcd while a write waits for it.
	pingEvery = time.Second
)

// store is the ledger with errors in the API's words. Nothing waits for etcd for long.
type store struct{ *ledger.Ledger }

// readLedger bounds a read of the ledger and translates its error.
func readLedger[T any](ctx context.Context, l store, f func(context.Context) (T, error)) (T, error) {
	var v T
	err := l.bounded(ctx, func(ctx context.Context) (err error) {
		v, err = f(ctx)
		return err
	})
	return v, translate(err)
}

// bounded runs something that reads etcd, but not for long. Its error wraps
// study.ErrAway if etcd does not answer.
func (l store) bounded(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	err := f(bounded)
	if err != nil && ctx.Err() == nil && (bounded.Err() != nil || ledger.Away(err)) {
		return fmt.Errorf("%w: etcd at %s does not answer", study.ErrAway, strings.Join(l.Endpoints(), ", "))
	}
	return err
}

// write runs a command of the coordinator and translates its error. A write may take its
// time, but not because etcd does not answer: then the error wraps study.ErrAway.
func (l store) write(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	watching.Go(func() {
		for ctx.Err() == nil {
			if err := l.bounded(ctx, l.Ping); errors.Is(err, study.ErrAway) {
				stop(err)
			}
			backoff.Sleep(ctx, pingEvery)
		}
	})
	err := translate(f(ctx))
	away := context.Cause(ctx)
	if away == nil && errors.Is(err, study.ErrUnavailable) { // a term can end because of etcd
		away = l.bounded(ctx, l.Ping)
	}
	if err != nil && errors.Is(away, study.ErrAway) {
		return fmt.Errorf("%w; once it does, the change may still be made", away)
	}
	return err
}

// write is store.write of a command that returns something.
func write[T any](ctx context.Context, l store, f func(context.Context) (T, error)) (v T, err error) {
	err = l.write(ctx, func(ctx context.Context) (err error) {
		v, err = f(ctx)
		return err
	})
	return v, err
}

func (l store) list(ctx context.Context, from string, limit int) ([]ledger.Summary, error) {
	return readLedger(ctx, l, func(ctx context.Context) ([]ledger.Summary, error) { return l.List(ctx, from, limit) })
}

func (l store) study(ctx context.Context, nameOrID string) (ledger.Summary, error) {
	return readLedger(ctx, l, func(ctx context.Context) (ledger.Summary, error) { return l.Study(ctx, nameOrID) })
}

func (l store) head(ctx context.Context, nameOrID string) (ledger.Summary, error) {
	return readLedger(ctx, l, func(ctx context.Context) (ledger.Summary, error) { return l.Head(ctx, nameOrID) })
}

func (l store) name(ctx context.Context, nameOrID string) (string, error) {
	return readLedger(ctx, l, func(ctx context.Context) (string, error) { return l.Name(ctx, nameOrID) })
}

func (l store) id(ctx context.Context, nameOrID string) (string, error) {
	return readLedger(ctx, l, func(ctx context.Context) (string, error) { return l.ID(ctx, nameOrID) })
}

func (l store) trial(ctx context.Context, id string, number int) (record.Trial, error) {
	return readLedger(ctx, l, func(ctx context.Context) (record.Trial, error) { return l.Trial(ctx, id, number) })
}

func (l store) curve(ctx context.Context, id string, number int) (*curve.Curve, error) {
	return readLedger(ctx, l, func(ctx context.Context) (*curve.Curve, error) { return l.Curve(ctx, id, number) })
}

// aside says which messages of a study were set aside, and why; "" if none were.
func (l store) aside(ctx context.Context, id string) (string, error) {
	return readLedger(ctx, l, func(ctx context.Context) (string, error) {
		last, n, err := l.AsidesOf(ctx, id)
		if err != nil || last == nil {
			return "", err
		}
		return fmt.Sprintf("%d messages were set aside because the dead-letter queue refused them (%s); the last one: %s",
			n, last.Refused, last.Reason), nil
	})
}

func (l store) trials(ctx context.Context, id string, from, limit int) ([]record.Trial, error) {
	return readLedger(ctx, l, func(ctx context.Context) ([]record.Trial, error) { return l.Trials(ctx, id, from, limit) })
}
