package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// journalEvery is how often a journal that is followed is looked at.
	journalEvery = 500 * time.Millisecond
	// journalShare bounds the time for reading it to one part in so many, however large it is.
	journalShare = 10
)

// followed is a journal that is read again after its program has written to it.
type followed struct {
	path string

	mu     sync.Mutex
	info   os.FileInfo // of the file that was read last
	rest   time.Time   // it is not read again before
	latest *inJournal
	result *display.Result
	err    error
}

var _ source = (*followed)(nil)

// refresh reads the journal if it has changed. f.mu MUST be held.
func (f *followed) refresh() error {
	now := time.Now()
	if now.Before(f.rest) {
		return f.err
	}
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return f.err
	}
	f.info = info // before the file is read, so that nothing written later is missed
	j, err := readJournal(f.path)
	if err == nil {
		f.latest = j
		f.result, err = j.result()
	}
	f.err = err
	f.rest = now.Add(journalShare * time.Since(now))
	return err
}

// now returns what the journal holds.
func (f *followed) now() (*inJournal, *display.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return nil, nil, err
	}
	return f.latest, f.result, nil
}

func (f *followed) place() string { return f.path }

func (f *followed) studies(ctx context.Context) ([]ledger.Summary, error) {
	j, _, err := f.now()
	if err != nil {
		return nil, err
	}
	return j.studies(ctx)
}

func (f *followed) read(_ context.Context, id string) (*display.Result, error) {
	_, r, err := f.now()
	if err == nil && r.Study.ID != id { // the program has begun another study
		err = fmt.Errorf("%w: study %q is not in %s any more", study.ErrNotFound, id, f.path)
	}
	return r, err
}

func (f *followed) trial(ctx context.Context, id string, number int) (record.Trial, error) {
	r, err := f.read(ctx, id)
	if err != nil {
		return record.Trial{}, err
	}
	return r.Trials[number-1], nil // the caller has found it before, and none goes away
}

func (f *followed) curve(ctx context.Context, id string, number int) (*curve.Curve, error) {
	j, _, err := f.now()
	if err != nil {
		return nil, err
	}
	return j.curve(ctx, id, number)
}

func (f *followed) dirOf(a *record.Attempt) (string, error) { return (&inJournal{}).dirOf(a) }

func (f *followed) damaged(err error) error { return (&inJournal{path: f.path}).damaged(err) }

// watched is kept for a journal that is followed: it has watches.
type watched struct{ kept }

// WatchTrials implements server.Backend.
func (w *watched) WatchTrials(ctx context.Context, nameOrID string, existing bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) {
		var last *display.Result
		for {
			r, err := w.study(ctx, nameOrID)
			if err != nil {
				yield(record.Trial{}, err)
				return
			}
			for _, t := range changed(last, r, existing) {
				if !yield(t, nil) {
					return
				}
			}
			if r.Status.State.Terminal() || !backoff.Sleep(ctx, journalEvery) {
				return
			}
			last = r
		}
	}
}

// changed returns the trials that a later result has and an earlier one has not. Without an earlier
// one, existing says whether to return all.
func changed(last, now *display.Result, existing bool) (list []record.Trial) {
	switch {
	case last == nil && !existing,
		last != nil && len(now.Trials) == len(last.Trials) && (len(now.Trials) == 0 || &now.Trials[0] == &last.Trials[0]):
		return nil // the file was not read again
	case last == nil:
		return now.Trials
	}
	for i, t := range now.Trials {
		if i >= len(last.Trials) || !reflect.DeepEqual(t, last.Trials[i]) {
			list = append(list, t)
		}
	}
	return list
}

// Dashboard serves the pages of the study in the state file of a Go program on a listener until ctx
// ends. They follow the file while the program writes it. Once they can be asked for, it calls ready with
// the study's name, and an error of that ends them. It closes the listener. The error wraps ErrNoState
// if the file holds no study.
func Dashboard(ctx context.Context, path string, l net.Listener, ready func(name string) error, log *slog.Logger) error {
	f := &followed{path: path}
	_, r, err := f.now()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	w := &watched{kept{from: f}}
	api, err := journalAPI(w, path)
	if err == nil {
		err = ready(r.Study.Definition.Metadata.Name)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return serveDashboard(ctx, l, w, api, log)
}
