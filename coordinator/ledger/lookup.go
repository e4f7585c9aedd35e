package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Summary is a study without its trials.
type Summary struct {
	Study  record.Study
	Status record.Status
	// Led says that the status is of the present leader. If it is not, nobody runs the study now, or
	// the next leader is about to.
	Led bool
	// Err is the same as in Records.
	Err error
}

// ID returns the id of a study given by its name or its id. The error wraps ErrNotFound
// if there is none. A name comes first: somebody may have named a study like the id of another.
func (l *Ledger) ID(ctx context.Context, nameOrID string) (string, error) {
	resp, err := l.client.Txn(ctx).Then(
		clientv3.OpGet(l.o.Prefix+nameKey(nameOrID)),
		clientv3.OpGet(l.o.Prefix+studyKey(nameOrID, specLeaf), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return "", fmt.Errorf("find study %s: %w", nameOrID, err)
	}
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) == 1 {
		var n nameRecord
		return n.ID, decode(kvs[0], &n)
	}
	if resp.Responses[1].GetResponseRange().Count == 1 {
		return nameOrID, nil
	}
	return "", fmt.Errorf("study %s: %w", nameOrID, ErrNotFound)
}

// Name returns the name of a study, given by its name or its id. The error wraps ErrNotFound if
// there is none.
func (l *Ledger) Name(ctx context.Context, nameOrID string) (string, error) {
	resp, err := l.client.Txn(ctx).Then(
		clientv3.OpGet(l.o.Prefix+nameKey(nameOrID), clientv3.WithCountOnly()),
		clientv3.OpGet(l.o.Prefix+studyKey(nameOrID, headLeaf)),
	).Commit()
	if err != nil {
		return "", fmt.Errorf("find study %s: %w", nameOrID, err)
	}
	if resp.Responses[0].GetResponseRange().Count == 1 {
		return nameOrID, nil
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs { // at most one
		var h head
		err := decode(kv, &h)
		return h.Definition.Metadata.Name, err
	}
	return "", fmt.Errorf("study %s: %w", nameOrID, ErrNotFound)
}

// Study reads a study, given by its name or its id, without its trials. The error wraps
// ErrNotFound if there is none, ErrCorrupt if it is unreadable.
func (l *Ledger) Study(ctx context.Context, nameOrID string) (Summary, error) {
	return l.summary(ctx, nameOrID, specLeaf)
}

// Head is Study with only the study's head: see study.Study.Head.
func (l *Ledger) Head(ctx context.Context, nameOrID string) (Summary, error) {
	return l.summary(ctx, nameOrID, headLeaf)
}

func (l *Ledger) summary(ctx context.Context, nameOrID, specOrHead string) (Summary, error) {
	id, err := l.ID(ctx, nameOrID)
	if err != nil {
		return Summary{}, err
	}
	out, err := l.summaries(ctx, specOrHead, []named{{nameOrID, id}})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("study %s: %w", nameOrID, ErrNotFound)
	}
	if err != nil {
		return Summary{}, err
	}
	return out[0], out[0].Err
}

// Studies reads all studies, without their trials, in the order of their creation.
// Unreadable records are reported for their study: see Summary.
func (l *Ledger) Studies(ctx context.Context) ([]Summary, error) {
	var all []named
	var out []Summary
	err := l.scan(ctx, l.o.Prefix+namesDir, 0, func(kv *mvccpb.KeyValue) error {
		var n nameRecord
		name := strings.TrimPrefix(string(kv.Key), l.o.Prefix+namesDir)
		if err := decode(kv, &n); err != nil {
			out = append(out, unreadable(named{name: name}, err))
			return nil
		}
		all = append(all, named{name, n.ID})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the studies: %w", err)
	}
	for part := range slices.Chunk(all, MaxOps/2) {
		some, err := l.summaries(ctx, specLeaf, part)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	slices.SortFunc(out, func(a, b Summary) int { return older(&a.Study, &b.Study) })
	return out, nil
}

// List reads up to limit studies in the order of their names, from a name on. It reads only
// their heads: see study.Study.Head. Unreadable records are reported for their study: see
// Summary.
func (l *Ledger) List(ctx context.Context, from string, limit int) ([]Summary, error) {
	var out []Summary
	for more := true; more && len(out) < limit; {
		resp, err := l.client.Get(ctx, l.o.Prefix+namesDir+from, clientv3.WithRange(prefixEnd(l.o.Prefix+namesDir)),
			clientv3.WithLimit(int64(min(limit-len(out), MaxOps/2))))
		if err != nil {
			return nil, fmt.Errorf("list the studies: %w", err)
		}
		more = resp.More
		var part []named
		for _, kv := range resp.Kvs {
			var n nameRecord
			name := strings.TrimPrefix(string(kv.Key), l.o.Prefix+namesDir)
			from = name + "\x00"
			if err := decode(kv, &n); err != nil {
				out = append(out, unreadable(named{name: name}, err))
				continue
			}
			part = append(part, named{name, n.ID})
		}
		some, err := l.summaries(ctx, headLeaf, part)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	slices.SortFunc(out, func(a, b Summary) int {
		return strings.Compare(a.Study.Definition.Metadata.Name, b.Study.Definition.Metadata.Name)
	})
	return out, nil
}

// named is a study's name with its id.
type named struct{ name, id string }

// unreadable returns what is known of a study with an unreadable record.
func unreadable(n named, err error) Summary {
	return Summary{Study: record.Study{ID: n.id, Definition: study.Study{Metadata: study.Metadata{Name: n.name}}}, Err: err}
}

// summaries reads studies by id, with their specifications or with the heads of these. It
// skips those that were deleted in the meantime. Each study and the leader's key are read in one transaction: a status
// is of the present leader if it was stored after that leader's key.
func (l *Ledger) summaries(ctx context.Context, specOrHead string, studies []named) ([]Summary, error) {
	if len(studies) == 0 {
		return nil, nil
	}
	gets := make([]clientv3.Op, 0, 2*len(studies)+1)
	for _, n := range studies {
		gets = append(gets, clientv3.OpGet(l.o.Prefix+studyKey(n.id, specOrHead)), clientv3.OpGet(l.o.Prefix+studyKey(n.id, statusLeaf)))
	}
	gets = append(gets, clientv3.OpGet(l.LeaderKey()))
	resp, err := l.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, fmt.Errorf("read the studies: %w", err)
	}
	leader := resp.Responses[2*len(studies)].GetResponseRange().Kvs
	var out []Summary
	for i, n := range studies {
		spec, status := resp.Responses[2*i].GetResponseRange().Kvs, resp.Responses[2*i+1].GetResponseRange().Kvs
		if len(spec) == 0 || len(status) == 0 {
			continue
		}
		var s Summary
		var h head
		into := any(&h.Study)
		if specOrHead == headLeaf {
			into = &h
		}
		if err := errors.Join(decode(spec[0], into), decode(status[0], &s.Status)); err != nil {
			s = unreadable(n, err)
		} else {
			s.Study = h.Study
			s.Led = len(leader) == 1 && status[0].ModRevision > leader[0].CreateRevision
		}
		out = append(out, s)
	}
	return out, nil
}

// Trials reads at most limit trials of a study, given its id, starting at a number. If
// it returns limit trials there may be more; continue at the last one's number plus 1.
func (l *Ledger) Trials(ctx context.Context, id string, from, limit int) ([]record.Trial, error) {
	key, end := l.o.Prefix+trialKey(id, from), prefixEnd(l.o.Prefix+studyDir(id)+trialsDir)
	resp, err := l.client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("read the trials of study %s: %w", id, err)
	}
	out := make([]record.Trial, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		if err := decode(kv, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Trial reads one trial of a study, given its id. The error wraps ErrNotFound if there
// is none.
func (l *Ledger) Trial(ctx context.Context, id string, number int) (record.Trial, error) {
	var t record.Trial
	resp, err := l.client.Get(ctx, l.o.Prefix+trialKey(id, number))
	if err != nil {
		return t, fmt.Errorf("read trial %d of study %s: %w", number, id, err)
	}
	if len(resp.Kvs) == 0 {
		return t, fmt.Errorf("trial %d of study %s: %w", number, id, ErrNotFound)
	}
	return t, decode(resp.Kvs[0], &t)
}

// LoadStudy reads a study with all its trials, given its id, at one revision. The error
// wraps ErrNotFound if there is none, ErrCorrupt if one of its records is unreadable.
func (l *Ledger) LoadStudy(ctx context.Context, id string) (*Records, error) {
	snap, err := l.load(ctx, l.o.Prefix+studyDir(id), l.scanWhole, func(*Records) bool { return true })
	if err != nil {
		return nil, err
	}
	if len(snap.Studies) == 0 {
		return nil, fmt.Errorf("study %s: %w", id, ErrNotFound)
	}
	if err := l.recount(ctx, &snap.Studies[0], snap.Revision); err != nil {
		return nil, err
	}
	if err := snap.Studies[0].Err; err != nil {
		return nil, err
	}
	return &snap.Studies[0], nil
}
