package ledger

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// Change is a change of the ledger. One of its last six fields is set.
type Change struct {
	// Revision is etcd's revision at the change; all changes of one commit share it.
	Revision int64
	// ID is the study's id.
	ID string

	// Reset means that the following changes of this revision are the complete state;
	// the receiver must forget what it knew. ID is empty unless a single study is
	// watched.
	Reset bool
	// Synced means that everything up to Revision has been delivered.
	Synced bool
	// Deleted means that the study was deleted.
	Deleted bool
	Study   *record.Study
	Status  *record.Status
	Trial   *record.Trial
}

// Watch calls receive for every change of the studies after a revision, in order, until
// ctx ends or receive returns an error, which Watch returns. An empty id means all
// studies. A revision of 0 requests the present state first, as a Reset and what
// follows it; this also happens if etcd no longer has the history. A slow receiver
// makes the etcd client queue, so receive should hand the change on and return.
func (l *Ledger) Watch(ctx context.Context, id string, after int64, receive func(Change) error) error {
	w := &watcher{l: l, id: id, prefix: l.o.Prefix + studiesDir, after: after, receive: receive}
	if id != "" {
		w.prefix = l.o.Prefix + studyDir(id)
	}
	pause := backoff.New(firstPause, lastPause)
	for {
		before := w.after
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case w.failed != nil:
			return w.failed
		case errors.Is(err, ErrCorrupt):
			return err
		case errors.Is(err, rpctypes.ErrCompacted):
			w.after = 0
			continue
		case w.after > before:
			pause.Reset()
		}
		if !pause.Wait(ctx) {
			return context.Cause(ctx)
		}
	}
}

type watcher struct {
	l       *Ledger
	id      string
	prefix  string
	after   int64
	receive func(Change) error
	// failed is the error of receive, or of an unreadable record.
	failed error
}

// follow delivers changes until the watch breaks; after is then the revision from which
// to continue. Without a leader, an etcd member would keep a silent watch open for ever, so one is required. Progress
// moves after also while nothing changes: if it stayed behind for long, etcd would have compacted it.
func (w *watcher) follow(ctx context.Context) error {
	if w.after == 0 {
		if err := w.present(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	changes := w.l.client.Watch(ctx, w.prefix, clientv3.WithPrefix(), clientv3.WithRev(w.after+1), clientv3.WithProgressNotify())
	for resp := range changes {
		if err := resp.Err(); err != nil {
			return err
		}
		for _, e := range resp.Events {
			if w.failed = w.event(e); w.failed != nil {
				return w.failed
			}
		}
		// While the client catches up, the header of a response may be ahead of its
		// events, so the last event counts.
		if n := len(resp.Events); n > 0 {
			w.after = resp.Events[n-1].Kv.ModRevision
			if w.failed = w.receive(Change{Revision: w.after, ID: w.id, Synced: true}); w.failed != nil {
				return w.failed
			}
		} else if resp.IsProgressNotify() {
			w.after = max(w.after, resp.Header.Revision)
		}
	}
	return errors.New("the watch was closed")
}

// present delivers the present state, between a Reset and a Synced. A receiver must have forgotten what it knew before:
// what was deleted while nobody watched is told by nothing else.
func (w *watcher) present(ctx context.Context) error {
	snap, err := w.l.load(ctx, w.prefix, w.l.scanWhole, func(*Records) bool { return false })
	if err != nil {
		return err
	}
	changes := []Change{{ID: w.id, Reset: true}}
	for i := range snap.Studies {
		s := &snap.Studies[i]
		if s.Err != nil {
			return s.Err
		}
		id := s.Study.ID
		changes = append(changes, Change{ID: id, Study: &s.Study}, Change{ID: id, Status: &s.Status})
		for j := range s.Trials {
			changes = append(changes, Change{ID: id, Trial: &s.Trials[j]})
		}
	}
	changes = append(changes, Change{ID: w.id, Synced: true})
	for _, c := range changes {
		c.Revision = snap.Revision
		if w.failed = w.receive(c); w.failed != nil {
			return w.failed
		}
	}
	w.after = snap.Revision
	return nil
}

func (w *watcher) event(e *clientv3.Event) error {
	id, leaf, ok := w.l.splitStudyKey(e.Kv.Key)
	if !ok {
		return nil // from a later version
	}
	c := Change{Revision: e.Kv.ModRevision, ID: id}
	if e.Type == mvccpb.Event_DELETE {
		if leaf != specLeaf {
			return nil // the rest of the study is deleted with it
		}
		c.Deleted = true
		return w.receive(c)
	}
	var err error
	switch {
	case leaf == specLeaf:
		c.Study = &record.Study{}
		err = decode(e.Kv, c.Study)
	case leaf == statusLeaf:
		c.Status = &record.Status{}
		err = decode(e.Kv, c.Status)
	case strings.HasPrefix(leaf, trialsDir):
		c.Trial = &record.Trial{}
		err = decode(e.Kv, c.Trial)
	default:
		return nil // only the leader uses the model; other keys are from a later version
	}
	if err != nil {
		return err
	}
	return w.receive(c)
}
