package backend

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

// watches are the watches of studies, by the studies' ids. All who watch a study share one, so
// that many of them cost etcd and the coordinator hardly more than one does.
type watches struct {
	mu  sync.Mutex
	all map[string]*sharedWatch
}

// sharedWatch reads a study for any number of readers.
type sharedWatch struct {
	readers int // watches.mu guards it
	stop    context.CancelFunc
	running sync.WaitGroup
	wanted  chan struct{} // signals that a reader has come

	mu    sync.Mutex
	begun int // how many reads of the study have begun
	seen  view
	next  chan struct{} // closed and replaced when seen changes
}

// view is what a read of a study has found.
type view struct {
	study  server.Study
	gone   bool // the study was deleted
	failed error
	read   int // the number of the read
	// changes is how many changes of the study were noticed before the read.
	changes int
}

// over reports whether no view follows.
func (v *view) over() bool { return v.failed != nil || v.gone || v.study.Status.State.Terminal() }

// join returns the watch of a study. The caller MUST call leave.
func (b *Backend) join(ctx context.Context, id string) (w *sharedWatch, leave func()) {
	b.watches.mu.Lock()
	defer b.watches.mu.Unlock()
	w = b.watches.all[id]
	if w == nil || w.over() {
		if b.watches.all == nil {
			b.watches.all = map[string]*sharedWatch{}
		}
		// It goes on when its first reader leaves.
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		w = &sharedWatch{stop: stop, wanted: make(chan struct{}, 1), next: make(chan struct{})}
		b.watches.all[id] = w
		w.running.Go(func() { b.follow(ctx, w, id) })
	}
	w.readers++
	return w, func() { b.leave(w, id) }
}

// leave ends a watch when its last reader leaves.
func (b *Backend) leave(w *sharedWatch, id string) {
	b.watches.mu.Lock()
	w.readers--
	last := w.readers == 0
	if last && b.watches.all[id] == w {
		delete(b.watches.all, id)
	}
	b.watches.mu.Unlock()
	if last {
		w.stop()
		w.running.Wait()
	}
}

// follow reads a study after each change, and when a reader has come, until ctx ends or no view
// follows.
func (b *Backend) follow(ctx context.Context, w *sharedWatch, id string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := watchStudy(ctx, b.l, id)
	if err != nil {
		w.publish(view{failed: err})
		return
	}
	defer changes.running.Wait()
	defer cancel()
	for noticed := 0; ; {
		select {
		case _, more := <-changes.changed:
			if !more {
				deleted := errors.Is(changes.failed, errStop)
				if deleted {
					changes.failed = nil
				}
				w.publish(view{gone: deleted, failed: changes.failed})
				return
			}
			noticed++
		case <-w.wanted:
		}
		v := view{read: w.begin(), changes: noticed}
		v.study, err = b.watched(ctx, id)
		v.gone = errors.Is(err, ledger.ErrNotFound)
		if !v.gone {
			v.failed = err
		}
		w.publish(v)
		if v.over() {
			return
		}
	}
}

// watched reads what a watch shows of a study: its head, as lists do.
func (b *Backend) watched(ctx context.Context, id string) (server.Study, error) {
	s, err := b.l.head(ctx, id)
	if err != nil {
		return server.Study{}, err
	}
	if !s.Status.State.Terminal() {
		return b.shown(ctx, s)
	}
	if s, err = b.l.study(ctx, id); err != nil {
		return server.Study{}, err
	}
	return b.whole(ctx, s)
}

func (w *sharedWatch) begin() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	return w.begun
}

func (w *sharedWatch) publish(v view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = v
	close(w.next)
	w.next = make(chan struct{})
}

func (w *sharedWatch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.over()
}

// views yields the study as it is when the caller has come, and then after each change, until no
// view follows or ctx ends.
func (w *sharedWatch) views(ctx context.Context) iter.Seq[view] {
	return func(yield func(view) bool) {
		w.mu.Lock()
		first := w.begun + 1 // an earlier read may not see what the caller has just written
		w.mu.Unlock()
		select {
		case w.wanted <- struct{}{}:
		default: // a read is due
		}
		for shown := -1; ; {
			w.mu.Lock()
			v, next := w.seen, w.next
			w.mu.Unlock()
			if v.over() || v.read >= first && v.changes > shown {
				if !yield(v) || v.over() {
					return
				}
				shown = v.changes
				continue
			}
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
		}
	}
}
