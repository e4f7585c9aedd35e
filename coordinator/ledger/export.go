package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrCompacted means that etcd removed the old versions of keys while they were read.
var ErrCompacted = errors.New("etcd compacted its history while the ledger was read: " +
	"try again, or make etcd keep its history for longer (--auto-compaction-retention)")

// Export visits every record of the ledger at one revision, in the order of the keys,
// page by page. Keys are relative to the prefix. It leaves out the keys of leaders, which
// mean nothing in another etcd. begin is called first, with the revision. The error wraps
// ErrUnfinished if the ledger is not whole, ErrCompacted if reading took too long, and
// ErrCorrupt if records are damaged: Export visits the others, and names the damaged ones at the end.
func (l *Ledger) Export(ctx context.Context, begin func(revision int64) error,
	visit func(key string, value []byte) error) (Contents, error) {
	var r restoredRecord
	if found, err := l.get(ctx, l.restoredKey(), &r); err != nil {
		return Contents{}, err
	} else if found && !r.Done {
		return Contents{}, ErrUnfinished
	}
	return l.export(ctx, []string{""}, begin, visit)
}

// ExportStudy is Export for the records of one study, given its id and its name. It makes the record of the name,
// which lies elsewhere, from what the caller knows, and visits it last.
func (l *Ledger) ExportStudy(ctx context.Context, id, name string, begin func(revision int64) error,
	visit func(key string, value []byte) error) (Contents, error) {
	c, err := l.export(ctx, []string{studyDir(id), curvesOf(id)}, begin, visit)
	if err != nil {
		return c, err
	}
	record, err := json.Marshal(nameRecord{ID: id})
	if err != nil {
		return c, fmt.Errorf("encode the name's record: %w", err)
	}
	c.count(nameKey(name))
	return c, visit(nameKey(name), record)
}

// export visits the records below some prefixes, which are relative to the ledger's.
func (l *Ledger) export(ctx context.Context, prefixes []string, begin func(revision int64) error,
	visit func(key string, value []byte) error) (Contents, error) {
	var c Contents
	revision, err := l.Revision(ctx)
	if err != nil {
		return c, err
	}
	if err := begin(revision); err != nil {
		return c, err
	}
	var damaged []error
	for _, prefix := range prefixes {
		err := l.scan(ctx, l.o.Prefix+prefix, revision, func(kv *mvccpb.KeyValue) error {
			key := strings.TrimPrefix(string(kv.Key), l.o.Prefix)
			if strings.HasPrefix(key, leaderDir) || strings.HasPrefix(key, restoredDir) {
				return nil
			}
			c.count(key)
			value, err := open(kv)
			if err != nil {
				damaged = append(damaged, err)
				return nil
			}
			return visit(key, value)
		})
		if errors.Is(err, rpctypes.ErrCompacted) {
			err = fmt.Errorf("%w: %w", ErrCompacted, err)
		}
		if err != nil {
			return c, fmt.Errorf("read the ledger at revision %d: %w", revision, err)
		}
	}
	return c, allOf(damaged)
}

// maxNamed is how many damaged records an error names.
const maxNamed = 10

// allOf joins errors, of which it names the first ones.
func allOf(errs []error) error {
	if more := len(errs) - maxNamed; more > 0 {
		errs = append(errs[:maxNamed:maxNamed], fmt.Errorf("%w: %d more records", ErrCorrupt, more))
	}
	return errors.Join(errs...)
}

// Contents counts the records of the ledger, without those of leaders.
func (l *Ledger) Contents(ctx context.Context) (Contents, error) {
	var c Contents
	err := l.walk(ctx, l.o.Prefix, func(kv *mvccpb.KeyValue) error {
		if key := strings.TrimPrefix(string(kv.Key), l.o.Prefix); !strings.HasPrefix(key, leaderDir) {
			c.count(key)
		}
		return nil
	}, clientv3.WithKeysOnly(), clientv3.WithLimit(int64(10*l.o.PageSize)))
	if err != nil {
		return c, fmt.Errorf("count the records: %w", err)
	}
	return c, nil
}

// cutStudy returns what follows a study's id in a key below studiesDir.
func cutStudy(key string) (leaf string, ok bool) {
	rest, ok := strings.CutPrefix(key, studiesDir)
	if !ok {
		return "", false
	}
	_, leaf, ok = strings.Cut(rest, "/")
	return leaf, ok
}
