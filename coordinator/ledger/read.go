package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// Records are all records of one study. Trials are in the order of their numbers.
type Records struct {
	Study record.Study
	// Bytes is how many bytes the specification takes.
	Bytes int64
	// Head says that Study is only the specification's head: see study.Study.Head.
	Head   bool
	Status record.Status
	Model  record.Model
	Trials []record.Trial
	// Curves are the trials' curves, by number: all of a study that stops trials early, since its rule
	// must know them, and otherwise those of open trials, whose next attempts may continue them. Load
	// reads them only while the study runs.
	Curves map[int]*curve.Curve
	// Err describes unreadable records; it wraps ErrCorrupt. The other records are set,
	// and so are the study's id and, if it has one, its name.
	Err error
}

// Snapshot contains a shard's records at one revision of etcd. Studies are in the order
// of their creation.
type Snapshot struct {
	Revision int64
	Studies  []Records
	Cursors  map[messaging.Stream]messaging.Cursor
	// Lost are the cursors that are unreadable. Cursors lacks them, so that their streams are
	// read again from the start, which changes nothing.
	Lost []error
	// Traced is the time until which trials were folded whose spans have been exported;
	// zero if unknown.
	Traced time.Time
}

// Load reads all records at one revision, but of ended studies only the heads and the statuses: see
// LoadStudy. A leader calls it after Lead. Unreadable records are reported for their
// study: see Records.
func (l *Ledger) Load(ctx context.Context) (*Snapshot, error) {
	running := func(r *Records) bool { return r.Status.State == study.Running }
	snap, err := l.load(ctx, l.o.Prefix+studiesDir, l.scanRunning, running)
	if err != nil {
		return nil, err
	}
	for i := range snap.Studies {
		if r := &snap.Studies[i]; running(r) {
			if err := l.recount(ctx, r, snap.Revision); err != nil {
				return nil, err
			}
		}
	}
	snap.Traced, err = l.traced(ctx)
	return snap, err
}

// traced reads Snapshot.Traced. An unreadable time counts as unknown: spans are not worth
// a shard without a leader.
func (l *Ledger) traced(ctx context.Context) (until time.Time, err error) {
	resp, err := l.client.Get(ctx, l.tracedKey())
	if err != nil {
		return time.Time{}, fmt.Errorf("read until when spans were exported: %w", err)
	}
	for _, kv := range resp.Kvs { // at most one
		if decode(kv, &until) == nil {
			return until, nil
		}
	}
	return time.Time{}, nil
}

// scanner visits the keys below a prefix in order, at one revision.
type scanner func(ctx context.Context, prefix string, revision int64, visit func(*mvccpb.KeyValue) error) error

// load reads the studies below a prefix, and the cursors. It reads the curves of those
// studies that stop trials early and for which curved returns true. If etcd compacts the
// revision in the meantime, it starts over.
func (l *Ledger) load(ctx context.Context, prefix string, scan scanner, curved func(*Records) bool) (*Snapshot, error) {
	const tries = 5
	for i := 1; ; i++ {
		snap, err := l.loadOnce(ctx, prefix, scan, curved)
		if err == nil || i == tries || !errors.Is(err, rpctypes.ErrCompacted) {
			return snap, err
		}
	}
}

// loadOnce is a try of load. The cursors come first, and everything else is read at their revision: cursors that
// were newer than the records would skip messages whose effects are not in the snapshot.
func (l *Ledger) loadOnce(ctx context.Context, prefix string, scan scanner, curved func(*Records) bool) (*Snapshot, error) {
	resp, err := l.client.Get(ctx, l.cursorDir(), clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read the cursors: %w", err)
	}
	snap := &Snapshot{Revision: resp.Header.Revision, Cursors: map[messaging.Stream]messaging.Cursor{}}
	for _, kv := range resp.Kvs {
		var c messaging.Cursor
		if err := decode(kv, &c); err != nil {
			snap.Lost = append(snap.Lost, err)
			continue
		}
		snap.Cursors[messaging.Stream(strings.TrimPrefix(string(kv.Key), l.cursorDir()))] = c
	}
	studies := map[string]*Records{}
	err = scan(ctx, prefix, snap.Revision, func(kv *mvccpb.KeyValue) error {
		id, leaf, ok := l.splitStudyKey(kv.Key)
		if !ok || !known(leaf) && leaf != headLeaf {
			return nil // from a later version
		}
		r := studies[id]
		if r == nil {
			r = &Records{}
			studies[id] = r
		}
		r.add(leaf, func(v any) error { return decode(kv, v) })
		if leaf == specLeaf {
			r.Bytes = int64(len(kv.Value) - seal.Overhead)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the studies: %w", err)
	}
	for id, r := range studies {
		if r.Study.ID != id {
			r.Err = errors.Join(r.Err, fmt.Errorf("%w: study %s has no specification", ErrCorrupt, id))
			name, err := l.nameOf(ctx, id, snap.Revision)
			if err != nil {
				return nil, err
			}
			r.Study = record.Study{ID: id, Definition: study.Study{Metadata: study.Metadata{Name: name}}}
		}
		snap.Studies = append(snap.Studies, *r)
	}
	slices.SortFunc(snap.Studies, func(a, b Records) int { return older(&a.Study, &b.Study) })
	for i := range snap.Studies {
		r := &snap.Studies[i]
		if r.Err != nil || !curved(r) {
			continue
		}
		if r.Study.Definition.Spec.EarlyStopping == nil {
			r.Curves, err = l.openCurves(ctx, r, snap.Revision)
		} else {
			r.Curves = map[int]*curve.Curve{}
			err = l.curves(ctx, r.Study.ID, curvesOf(r.Study.ID), snap.Revision, r.Curves)
		}
		if err != nil {
			return nil, err
		}
	}
	return snap, nil
}

// recount compares a study's trials, all of which were read at a revision, with the counts in its
// status. A difference is an error of the study, since a commit stores both. It would otherwise go unnoticed if a
// trial's record was lost as a whole: the records that are left have right checksums.
func (l *Ledger) recount(ctx context.Context, r *Records, revision int64) error {
	if r.Err != nil {
		return nil //nolint:nilerr // it is told already
	}
	counts, known := record.Count(r.Trials)
	if !known || len(r.Trials) == r.Status.Trials && counts == r.Status.Counts {
		return nil // loading the study tells an unknown state
	}
	// A commit that takes several transactions may just be applied.
	resp, err := l.client.Get(ctx, l.redoDir(), clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithRev(revision))
	if err != nil {
		return fmt.Errorf("recount the trials of study %s: %w", r.Study.ID, err)
	}
	if resp.Count == 0 {
		r.Err = fmt.Errorf("%w: the status of study %s has %d trials (%s), but the ledger has %d (%s)",
			ErrCorrupt, r.Study.ID, r.Status.Trials, r.Status.Counts, len(r.Trials), counts)
	}
	return nil
}

func older(a, b *record.Study) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
}

// known reports whether this version knows the record of a key below a study's prefix.
func known(leaf string) bool {
	return leaf == specLeaf || leaf == statusLeaf || leaf == modelLeaf || strings.HasPrefix(leaf, trialsDir)
}

// add reads a record of the study; it skips unreadable ones, so that whoever salvages the study has the rest.
func (r *Records) add(leaf string, decode func(v any) error) {
	var err error
	switch leaf {
	case specLeaf:
		err = decode(&r.Study)
	case headLeaf:
		var h head
		err = decode(&h)
		r.Study, r.Bytes, r.Head = h.Study, h.Bytes, true
	case statusLeaf:
		err = decode(&r.Status)
	case modelLeaf:
		err = decode(&r.Model)
	default:
		var t record.Trial
		if err = decode(&t); err == nil {
			r.Trials = append(r.Trials, t)
		}
	}
	r.Err = errors.Join(r.Err, err)
}

// nameOf returns the name of a study whose specification is unreadable, or an empty
// string.
func (l *Ledger) nameOf(ctx context.Context, id string, revision int64) (name string, err error) {
	err = l.scan(ctx, l.o.Prefix+namesDir, revision, func(kv *mvccpb.KeyValue) error {
		var n nameRecord
		if decode(kv, &n) == nil && n.ID == id {
			name = strings.TrimPrefix(string(kv.Key), l.o.Prefix+namesDir)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("find the name of study %s: %w", id, err)
	}
	return name, nil
}

// scanWhole is a scanner that skips the heads of specifications: it visits these as a whole.
func (l *Ledger) scanWhole(ctx context.Context, prefix string, revision int64, visit func(*mvccpb.KeyValue) error) error {
	return l.scan(ctx, prefix, revision, func(kv *mvccpb.KeyValue) error {
		if _, leaf, ok := l.splitStudyKey(kv.Key); ok && leaf == headLeaf {
			return nil
		}
		return visit(kv)
	})
}

// scan visits the keys below a prefix in order, at one revision, page by page.
func (l *Ledger) scan(ctx context.Context, prefix string, revision int64, visit func(*mvccpb.KeyValue) error) error {
	return l.walk(ctx, prefix, visit, clientv3.WithRev(revision))
}

// walk visits the keys below a prefix in order, page by page. Without a revision among the options, pages may be of
// different ones.
func (l *Ledger) walk(ctx context.Context, prefix string, visit func(*mvccpb.KeyValue) error, options ...clientv3.OpOption) error {
	page := []clientv3.OpOption{clientv3.WithRange(prefixEnd(prefix)), clientv3.WithLimit(int64(l.o.PageSize))}
	key, options := prefix, append(page, options...)
	for {
		resp, err := l.client.Get(ctx, key, options...)
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			if err := visit(kv); err != nil {
				return err
			}
		}
		if !resp.More {
			return nil
		}
		key = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// scanRunning is a scanner that visits only the heads and the statuses of ended studies. It finds
// the studies by their names, so its cost does not depend on how large those are. No study is lost by
// damage: if a head is damaged, it visits the whole study, and if a name is unreadable, every study.
func (l *Ledger) scanRunning(ctx context.Context, prefix string, revision int64, visit func(*mvccpb.KeyValue) error) error {
	var ids []string
	var unreadable error
	err := l.scan(ctx, l.o.Prefix+namesDir, revision, func(kv *mvccpb.KeyValue) error {
		var n nameRecord
		unreadable = errors.Join(unreadable, decode(kv, &n))
		ids = append(ids, n.ID)
		return nil
	})
	if err != nil {
		return err
	}
	if unreadable != nil {
		return l.scanWhole(ctx, prefix, revision, visit)
	}
	for part := range slices.Chunk(ids, MaxOps/2) {
		var gets []clientv3.Op
		for _, id := range part {
			for _, leaf := range []string{headLeaf, statusLeaf} {
				gets = append(gets, clientv3.OpGet(l.o.Prefix+studyKey(id, leaf), clientv3.WithRev(revision)))
			}
		}
		resp, err := l.client.Txn(ctx).Then(gets...).Commit()
		if err != nil {
			return err
		}
		for i, id := range part {
			heads := slices.Concat(resp.Responses[2*i].GetResponseRange().Kvs, resp.Responses[2*i+1].GetResponseRange().Kvs)
			if !ended(heads) {
				err = l.scanWhole(ctx, l.o.Prefix+studyDir(id), revision, visit)
			} else {
				err = errors.Join(visit(heads[0]), visit(heads[1]))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// ended reports whether a study's head and status are present and readable, and the status says that
// the study has ended.
func ended(heads []*mvccpb.KeyValue) bool {
	var h head
	var s record.Status
	return len(heads) == 2 && decode(heads[0], &h) == nil && decode(heads[1], &s) == nil && s.State.Terminal()
}

// Revision returns etcd's present revision. A Watch after it begins with what changes from
// now on.
func (l *Ledger) Revision(ctx context.Context) (int64, error) {
	resp, err := l.client.Get(ctx, l.LeaderKey(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read etcd's revision: %w", err)
	}
	return resp.Header.Revision, nil
}
