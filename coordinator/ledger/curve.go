package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// Curve reads a trial's curve, given its study's id; nil where it has none. The
// error wraps ErrCorrupt where what is stored is no curve.
func (l *Ledger) Curve(ctx context.Context, id string, trial int) (*curve.Curve, error) {
	dir := l.o.Prefix + curveDir(id, trial)
	resp, err := l.client.Get(ctx, dir, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read the curve of trial %d of study %s: %w", trial, id, err)
	}
	if len(resp.Kvs) == 0 {
		return nil, nil
	}
	segments := make([][]byte, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		if string(kv.Key) != l.o.Prefix+segmentKey(id, trial, i) {
			return nil, fmt.Errorf("%w: %s is not segment %d", ErrCorrupt, kv.Key, i)
		}
		if segments[i], err = open(kv); err != nil {
			return nil, err
		}
	}
	c, err := curve.Read(segments)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, dir, err)
	}
	return c, nil
}

// openCurves reads the curves of the trials that workers have begun, at a revision. It skips curves that
// cannot be read. The next report of such a trial continues its curve, and with it what the trial has reached.
func (l *Ledger) openCurves(ctx context.Context, r *Records, revision int64) (map[int]*curve.Curve, error) {
	if r.Study.Definition.Spec.ByClients() {
		return nil, nil // clients tell the values of their trials themselves
	}
	curves := map[int]*curve.Curve{}
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.State.Terminal() || len(t.Attempts) == 0 {
			continue
		}
		if err := l.curves(ctx, r.Study.ID, curveDir(r.Study.ID, t.Number), revision, curves); err != nil {
			return nil, err
		}
	}
	return curves, nil
}

// curves reads the curves of a study's trials below a directory, at a revision. It skips curves that
// cannot be read: new reports replace them.
func (l *Ledger) curves(ctx context.Context, id, dir string, revision int64, curves map[int]*curve.Curve) error {
	var trial int
	var segments [][]byte
	var damaged error
	add := func() {
		if c, err := curve.Read(segments); err == nil && damaged == nil && len(segments) > 0 {
			curves[trial] = c
		}
		segments, damaged = nil, nil
	}
	err := l.scan(ctx, l.o.Prefix+dir, revision, func(kv *mvccpb.KeyValue) error {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), l.o.Prefix+curvesOf(id)), "/")
		if n, err := strconv.Atoi(name); err == nil { // else it is from a later version
			if n != trial {
				add()
				trial = n
			}
			segment, err := open(kv)
			segments, damaged = append(segments, segment), errors.Join(damaged, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the curves of study %s: %w", id, err)
	}
	add()
	return nil
}

// WatchCurves calls receive for the segments of a study's curves as they are stored. If
// existing is set, it first delivers the segments that are stored already. It delivers a
// whole segment each time it changes, so points are repeated: receive should pick those of
// later steps. WatchCurves ends when ctx ends or when receive returns an error, which it
// returns. When flush is closed, it delivers what is stored by then and returns nil.
func (l *Ledger) WatchCurves(ctx context.Context, id string, existing bool, flush <-chan struct{},
	receive func(curve.Reported) error) error {
	w := &curveWatcher{l: l, prefix: l.o.Prefix + curvesOf(id), receive: receive, skip: !existing}
	pause := backoff.New(firstPause, lastPause)
	for {
		if w.present(ctx) == nil {
			pause.Reset()
			_ = w.follow(ctx, flush) // why a watch breaks does not matter
		}
		select {
		case <-flush:
			if w.failed == nil {
				w.failed = w.present(ctx)
			}
			return w.failed
		default:
		}
		switch {
		case w.failed != nil:
			return w.failed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
		case <-flush:
		case <-time.After(pause.Next()):
		}
	}
}

// curveWatcher is a WatchCurves in progress. A watch may break at any time, and etcd may have compacted what came
// since, so it goes on by reading what is stored with a later revision, and not by the watch alone.
type curveWatcher struct {
	l       *Ledger
	prefix  string
	receive func(curve.Reported) error
	after   int64 // the revision up to which everything was delivered
	skip    bool  // what is stored at first is not wanted
	failed  error // what receive returned, or a record that cannot be read
}

// present delivers what is stored and was not delivered yet. The revision is read BEFORE the records: what is stored
// in between is delivered by follow, which begins behind it.
func (w *curveWatcher) present(ctx context.Context) error {
	revision, err := w.l.Revision(ctx)
	if err == nil && !w.skip {
		err = w.l.walk(ctx, w.prefix, w.deliver, clientv3.WithRev(revision), clientv3.WithMinModRev(w.after+1))
	}
	switch {
	case w.failed != nil:
		return w.failed
	case err != nil:
		return fmt.Errorf("read curves: %w", err)
	}
	w.after, w.skip = revision, false
	return nil
}

// follow delivers what is stored from now on, until the watch breaks or flush is closed.
func (w *curveWatcher) follow(ctx context.Context, flush <-chan struct{}) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	changes := w.l.client.Watch(ctx, w.prefix, clientv3.WithPrefix(), clientv3.WithRev(w.after+1), clientv3.WithFilterDelete())
	for {
		select {
		case <-flush:
			return nil
		case resp, ok := <-changes:
			if !ok {
				return errors.New("the watch was closed")
			}
			if err := resp.Err(); err != nil {
				return err
			}
			for _, e := range resp.Events {
				if err := w.deliver(e.Kv); err != nil {
					return err
				}
				w.after = e.Kv.ModRevision
			}
		}
	}
}

func (w *curveWatcher) deliver(kv *mvccpb.KeyValue) error {
	number, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), w.prefix), "/")
	trial, err := strconv.Atoi(number)
	var attempt int
	var series []curve.Series
	segment, errOpen := open(kv)
	if errOpen != nil {
		w.failed = errOpen
		return w.failed
	}
	if err == nil {
		attempt, series, err = curve.ReadSegment(segment)
	}
	if err != nil {
		w.failed = fmt.Errorf("%w: %s: %w", ErrCorrupt, kv.Key, err)
		return w.failed
	}
	w.failed = w.receive(curve.Reported{Trial: trial, Attempt: attempt, Series: series})
	return w.failed
}
