package backend

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// WatchTrials implements server.Backend. A slow reader gets the latest state of a
// trial, not each state in between.
func (b *Backend) WatchTrials(ctx context.Context, nameOrID string, existing bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) {
		// A watch from the present revision on does not read all trials first.
		var after int64
		var err error
		if !existing {
			after, err = readLedger(ctx, b.l, b.l.Revision)
		}
		var s ledger.Summary
		if err == nil {
			s, err = b.l.head(ctx, nameOrID)
		}
		if err != nil {
			yield(record.Trial{}, err)
			return
		}
		if !existing && s.Status.State.Terminal() {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		w := newTrialWatch(after)
		w.running.Go(func() {
			defer close(w.changed)
			w.failed = b.l.Watch(ctx, s.Study.ID, after, w.receive)
		})
		defer w.running.Wait()
		defer cancel()
		for range w.changed {
			if !b.sendTrials(ctx, w, s.Study.ID, yield) {
				return
			}
		}
		if b.sendTrials(ctx, w, s.Study.ID, yield) {
			b.end(ctx, w.failed, func(err error) { yield(record.Trial{}, err) })
		}
	}
}

// sendTrials yields the waiting trials, and reports whether more are wanted.
func (b *Backend) sendTrials(ctx context.Context, w *trialWatch, id string, yield func(record.Trial, error) bool) bool {
	for number, t := range w.waiting() {
		if t == nil {
			read, err := b.l.Trial(ctx, id, number)
			if errors.Is(err, ledger.ErrNotFound) {
				return false // the study was deleted
			}
			if err != nil {
				b.end(ctx, err, func(err error) { yield(record.Trial{}, err) })
				return false
			}
			t = &read
		}
		if !yield(*t, nil) {
			return false
		}
	}
	return true
}

// maxKept is the number of trials that a watch keeps for its reader.
const maxKept = 10_000

// trialWatch keeps changed trials until their reader takes them, each once in its
// latest state. It ends after the revision that ends the study.
type trialWatch struct {
	after int64 // the revision after which changes count
	// changed signals that trials wait. It is closed when the watch has ended; failed
	// is then its error.
	changed chan struct{}
	failed  error
	running sync.WaitGroup
	ended   bool

	mu sync.Mutex
	// order contains the numbers of waiting trials, trials the trials by number. Beyond
	// maxKept a trial is nil, and is read from the ledger in its turn.
	order  []int
	trials map[int]*record.Trial
}

func newTrialWatch(after int64) *trialWatch {
	return &trialWatch{after: after, changed: make(chan struct{}, 1), trials: map[int]*record.Trial{}}
}

// receive never waits for the reader: the ledger's watch would queue behind it.
func (w *trialWatch) receive(c ledger.Change) error {
	switch {
	case c.Deleted || c.Synced && w.ended:
		return errStop
	case c.Status != nil:
		w.ended = c.Status.State.Terminal()
	case c.Trial != nil && c.Revision > w.after:
		w.add(*c.Trial)
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

func (w *trialWatch) add(t record.Trial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, waits := w.trials[t.Number]
	if !waits {
		w.order = append(w.order, t.Number)
	}
	if waits && before == nil || !waits && len(w.trials) >= maxKept {
		w.trials[t.Number] = nil
	} else {
		w.trials[t.Number] = &t
	}
}

// waiting takes the waiting trials, in the order of their changes.
func (w *trialWatch) waiting() iter.Seq2[int, *record.Trial] {
	return func(yield func(int, *record.Trial) bool) {
		for {
			number, t, ok := w.takeNext()
			if !ok || !yield(number, t) {
				return
			}
		}
	}
}

func (w *trialWatch) takeNext() (number int, t *record.Trial, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return 0, nil, false
	}
	number, w.order = w.order[0], w.order[1:]
	t = w.trials[number]
	delete(w.trials, number)
	return number, t, true
}
