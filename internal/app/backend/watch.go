package backend

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

// errStop ends a watch from inside.
var errStop = errors.New("the watch has ended")

// WatchStudy implements server.Backend. A slow reader gets the latest state of the
// study, not each state in between.
func (b *Backend) WatchStudy(ctx context.Context, nameOrID string) iter.Seq2[server.Study, error] {
	return namedAll(ctx, b, nameOrID, func(yield func(server.Study, error) bool) {
		id, err := b.l.id(ctx, nameOrID)
		if err != nil {
			yield(server.Study{}, err)
			return
		}
		w, leave := b.join(ctx, id)
		defer leave()
		for v := range w.views(ctx) {
			switch {
			case v.failed != nil:
				b.end(ctx, v.failed, func(err error) { yield(server.Study{}, err) })
				return
			case v.gone || !yield(v.study, nil) || v.study.Status.State.Terminal():
				return
			}
		}
	})
}

// studyWatch signals that a study has changed, once for any number of changes.
type studyWatch struct {
	// changed is closed when the watch has ended; failed is then its error.
	changed chan struct{}
	failed  error
	running sync.WaitGroup
}

// watchStudy watches a study until it is deleted or ctx ends; the caller must wait
// until the watch no longer runs. The first signal is for the first change after the call.
func watchStudy(ctx context.Context, l store, id string) (*studyWatch, error) {
	// From a revision on, a watch does not begin with all trials.
	now, err := readLedger(ctx, l, l.Revision)
	if err != nil {
		return nil, err
	}
	w := &studyWatch{changed: make(chan struct{}, 1)}
	w.running.Go(func() {
		defer close(w.changed)
		dirty := false
		w.failed = l.Watch(ctx, id, now, func(c ledger.Change) error {
			switch {
			case c.Deleted:
				return errStop
			case c.Status != nil || c.Study != nil:
				dirty = true
			case c.Synced && dirty:
				dirty = false
				select {
				case w.changed <- struct{}{}:
				default:
				}
			}
			return nil
		})
	})
	return w, nil
}

// end reports how a watch ended, unless its reader ended it.
func (b *Backend) end(ctx context.Context, err error, report func(error)) {
	if err != nil && !errors.Is(err, errStop) && ctx.Err() == nil {
		report(translate(err))
	}
}

// WatchMeasurements implements server.Backend.
func (b *Backend) WatchMeasurements(ctx context.Context, nameOrID string, existing bool,
	ended <-chan struct{}) iter.Seq2[curve.Reported, error] {
	return namedAll(ctx, b, nameOrID, func(yield func(curve.Reported, error) bool) {
		id, err := b.l.id(ctx, nameOrID)
		if err != nil {
			yield(curve.Reported{}, err)
			return
		}
		err = b.l.WatchCurves(ctx, id, existing, ended, func(r curve.Reported) error {
			if !yield(r, nil) {
				return errStop
			}
			return nil
		})
		b.end(ctx, err, func(err error) { yield(curve.Reported{}, err) })
	})
}
