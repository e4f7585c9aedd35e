package backend

import (
	"context"
	"iter"
	"sync"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// WatchTrials implements server.Backend. A slow reader gets the latest state of a
// trial, not each state in between.
func (b *Backend) WatchTrials(ctx context.Context, nameOrID string, existing bool) iter.Seq2[record.Trial, error] {
	return namedAll(ctx, b, nameOrID, func(yield func(record.Trial, error) bool) {
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
		if !existing {
			coordinator.Waiting(ctx)
		}
		for range w.changed {
			if !b.sendTrials(ctx, w, s.Study.ID, yield) {
				return
			}
		}
		if b.sendTrials(ctx, w, s.Study.ID, yield) {
			b.end(ctx, w.failed, func(err error) { yield(record.Trial{}, err) })
		}
	})
}

// sendTrials yields the waiting trials, and reports whether more are wanted.
func (b *Backend) sendTrials(ctx context.Context, w *trialWatch, id string, yield func(record.Trial, error) bool) bool {
	for next := range w.waiting() {
		trials := []record.Trial{}
		if next.trial != nil {
			trials = append(trials, *next.trial)
		} else {
			read, err := b.l.Trials(ctx, id, next.number, next.count)
			if err != nil {
				b.end(ctx, err, func(err error) { yield(record.Trial{}, err) })
				return false
			}
			trials = read
		}
		for _, t := range trials {
			if !yield(t, nil) {
				return false
			}
		}
		if len(trials) < next.count {
			return false // the study was deleted
		}
	}
	return true
}

const (
	// maxKept is the number of trials that a watch keeps for its reader. A study has hundreds
	// of thousands, and a token may open many watches that nobody reads from.
	maxKept = 256
	// maxRead is how many others are read from the ledger at once.
	maxRead = 100
)

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

// batch is what a reader takes at once: a trial, or the numbers of trials that follow each other
// and are read from the ledger.
type batch struct {
	number, count int
	trial         *record.Trial // nil if it must be read
}

// waiting takes the waiting trials, in the order of their changes.
func (w *trialWatch) waiting() iter.Seq[batch] {
	return func(yield func(batch) bool) {
		for {
			next, ok := w.takeNext()
			if !ok || !yield(next) {
				return
			}
		}
	}
}

func (w *trialWatch) takeNext() (next batch, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.order) > 0 && next.count < maxRead {
		number := w.order[0]
		t := w.trials[number]
		if next.count > 0 && (t != nil || number != next.number+next.count) {
			break
		}
		w.order = w.order[1:]
		delete(w.trials, number)
		if t != nil {
			return batch{number, 1, t}, true
		}
		if next.count == 0 {
			next.number = number
		}
		next.count++
	}
	return next, next.count > 0
}
