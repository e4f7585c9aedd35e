// Package ledger keeps studies and trials in etcd, the authoritative record.
//
// # Writing
//
// Only a shard's leader writes, through a Writer. Every transaction compares the
// create-revision of the leader's key with the leader's epoch, so that nothing
// of a leader that was replaced is stored; and it compares the revision of the
// shard's last commit, so that it is stored at most once and in order, however
// often it is sent and however late an old copy of it arrives. That makes an
// unanswered transaction safe to send again: either copy wins, and the nonce in
// the commit's record says that it was this one.
//
// A Batch is stored as a whole or not at all, whatever its size. etcd bounds a
// transaction (here 100 operations and 1 MiB): a larger batch is first written
// to a redo log, counts as committed with the log's last transaction, and is
// then applied. A leader that finds a complete redo log applies it before
// anything else; an incomplete one is discarded.
//
// # Reading
//
// Every replica reads. A reader sees a batch whole, except that it may see a
// part of one that is larger than a transaction while it is being applied.
//
// # Damage
//
// Every value has a checksum over itself and its key. A record that cannot be read is an error of its
// study, which stays as it is until somebody mends it, and never one of the shard: a single flipped bit
// must not keep all other studies from going on. Records and fields of later versions are left alone.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// DefaultPrefix is the default prefix of every key.
	DefaultPrefix = "/fantasia/v1/"
	// MaxOps is the largest number of operations side by side in a transaction; etcd's
	// own limit is 128.
	MaxOps = 100
	// MaxCommit is the largest number of operations in a commit of one transaction, which
	// then contains further ones: see nested.
	MaxCommit = nestedOps * 16
	// MaxBytes is the largest size of a transaction; etcd's own limit is 1.5 MiB.
	MaxBytes = 1 << 20
)

var (
	// ErrFenced means that the fence's key is gone or belongs to another leader; the
	// caller must step down. Together with ErrUnknown, the write may have been stored.
	ErrFenced = study.NewError(study.ErrUnavailable, "another leader has taken over")
	// ErrUnknown means that a write may or may not have been stored, because no answer
	// came in time. Its Writer refuses further writes: the caller must step down and
	// let the next leader read the actual state.
	ErrUnknown = study.NewError(study.ErrUnavailable, "the outcome of a write to etcd is unknown")
	// ErrNoSpace means that etcd's quota is used up. Nothing was written; the same
	// batch can be retried.
	ErrNoSpace = study.NewError(study.ErrUnavailable, "etcd has no space left (NOSPACE): defragment it or raise its quota "+
		"(--quota-backend-bytes); coordinators then end its alarm")
	// ErrTooLarge means that a single record is larger than MaxBytes.
	ErrTooLarge = errors.New("the record is too large for etcd")
	// ErrNameTaken means that a study of that name exists.
	ErrNameTaken = study.NewError(study.ErrExists, "a study of that name already exists")
	// ErrCorrupt means that a record is damaged, or that this version cannot read it.
	ErrCorrupt = study.NewError(study.ErrDamaged, "the ledger contains an unreadable record")
	// ErrNotFound means that there is no such study or trial.
	ErrNotFound = study.NewError(study.ErrNotFound, "not found")
)

// Options configure a Ledger; the zero value of each field means its default.
type Options struct {
	// Prefix is the prefix of every key and ends with a slash. Default DefaultPrefix.
	Prefix string
	// Shard names the part of the studies that a leader writes. Default
	// messaging.Shard.
	Shard string
	// TryTimeout limits one request, after which it is sent again. Default 3 s.
	TryTimeout time.Duration
	// Deadline limits a whole call that writes, including repetitions. Default 30 s.
	Deadline time.Duration
	// PageSize is the number of records in a request for many. Default 500.
	PageSize int
	// MaxCommit is the largest number of operations in a commit of one transaction; a
	// larger commit is written to the redo log. Default MaxCommit, which is also the
	// largest. Tests make it small.
	MaxCommit int
}

// Ledger reads and writes one shard's records. It is safe for concurrent use, and does
// not close its client. It caches nothing: what it returns is what etcd has at that moment, also on a replica that
// does not lead.
type Ledger struct {
	client *clientv3.Client
	o      Options
}

// New returns a ledger over a client of etcd.
func New(client *clientv3.Client, o Options) *Ledger {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	o.Shard = cmp.Or(o.Shard, messaging.Shard)
	o.TryTimeout = cmp.Or(o.TryTimeout, 3*time.Second)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.PageSize = cmp.Or(o.PageSize, 500)
	if o.MaxCommit == 0 || o.MaxCommit > MaxCommit {
		o.MaxCommit = MaxCommit
	}
	return &Ledger{client: client, o: o}
}

// Endpoints returns the addresses of etcd.
func (l *Ledger) Endpoints() []string { return l.client.Endpoints() }

// Ping reads one key. Like every read it waits for etcd until ctx ends.
func (l *Ledger) Ping(ctx context.Context) error {
	if _, err := l.client.Get(ctx, l.LeaderKey()); err != nil {
		return fmt.Errorf("ping etcd: %w", err)
	}
	return nil
}

// LeaderKey returns the key for which a shard's candidates compete.
func (l *Ledger) LeaderKey() string { return l.o.Prefix + leaderDir + l.o.Shard }

// The keys below Prefix. All of a study's records but its curves share a prefix, so one range contains
// them. A study is found by its name below namesDir: without that record, nobody sees the others.
// Numbers have leading zeros, so that the order of the keys is that of the trials and segments.
const (
	studiesDir = "studies/"
	// Curves are not below studiesDir: who loads the studies does not read them.
	curvesDir = "curves/"
	namesDir  = "names/"
	leaderDir = "leader/"
	// restoredDir holds a record of a shard while it is restored, until a leader has
	// taken over what was restored.
	restoredDir = "restored/"
	// tracedDir holds, by shard, until when spans have been exported.
	tracedDir = "traced/"
	specLeaf  = "spec"
	// headLeaf is what lists show of the specification.
	headLeaf   = "head"
	statusLeaf = "status"
	modelLeaf  = "model"
	trialsDir  = "trials/"
)

func studyDir(id string) string       { return studiesDir + id + "/" }
func studyKey(id, leaf string) string { return studyDir(id) + leaf }
func trialKey(id string, number int) string {
	return fmt.Sprintf("%s%s%08d", studyDir(id), trialsDir, number)
}
func curvesOf(id string) string { return curvesDir + id + "/" }
func curveDir(id string, trial int) string {
	return fmt.Sprintf("%s%08d/", curvesOf(id), trial)
}
func segmentKey(id string, trial, n int) string {
	return fmt.Sprintf("%s%06d", curveDir(id, trial), n)
}
func nameKey(name string) string       { return namesDir + name }
func (l *Ledger) epochKey() string     { return l.o.Prefix + "epochs/" + l.o.Shard }
func (l *Ledger) restoredKey() string  { return l.o.Prefix + restoredDir + l.o.Shard }
func (l *Ledger) commitKey() string    { return l.o.Prefix + "commits/" + l.o.Shard }
func (l *Ledger) redoDir() string      { return l.o.Prefix + "redo/" + l.o.Shard + "/" }
func (l *Ledger) cursorDir() string    { return l.o.Prefix + "cursors/" + l.o.Shard + "/" }
func (l *Ledger) tracedKey() string    { return l.o.Prefix + tracedDir + l.o.Shard }
func (l *Ledger) redoKey(i int) string { return fmt.Sprintf("%s%06d", l.redoDir(), i) }
func prefixEnd(prefix string) string   { return clientv3.GetPrefixRangeEnd(prefix) }

// splitStudyKey returns the id and the rest of a key below studiesDir.
func (l *Ledger) splitStudyKey(key []byte) (id, leaf string, ok bool) {
	rest, ok := strings.CutPrefix(string(key), l.o.Prefix+studiesDir)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// Space is how full etcd's database is.
type Space struct {
	// Used is how many bytes are in use, and Size how many the file has with what was freed in
	// it. etcd refuses every write once Size is Quota, which is 0 if etcd does not tell.
	Used, Size, Quota int64
	// Full means that etcd refuses writes (its alarm NOSPACE).
	Full bool
}

// Space reads how full etcd's database is: the fullest of its members, since one that is full makes the whole
// cluster refuse writes.
func (l *Ledger) Space(ctx context.Context) (fullest Space, err error) {
	if l.client.Maintenance == nil { // an etcd of a simulation
		return Space{}, nil
	}
	for _, endpoint := range l.client.Endpoints() {
		s, err := l.client.Status(ctx, endpoint)
		if err != nil {
			return Space{}, fmt.Errorf("ask etcd at %s how full it is: %w", endpoint, err)
		}
		fullest.Full = fullest.Full || slices.ContainsFunc(s.Errors, func(e string) bool { return strings.Contains(e, "NOSPACE") })
		if float64(s.DbSize)*float64(fullest.Quota) >= float64(fullest.Size)*float64(s.DbSizeQuota) {
			fullest.Used, fullest.Size, fullest.Quota = s.DbSizeInUse, s.DbSize, s.DbSizeQuota
		}
	}
	return fullest, nil
}

// reopenShare is the share of etcd's quota below which the file must be, so that etcd is not full again at once.
const reopenShare = 0.95

// Reopen ends etcd's alarm that it is full, and reports whether it did, if s has room again: etcd keeps the alarm, and
// refuses every write, until somebody ends it, also after it was defragmented or its quota was raised. Other alarms stay.
func (l *Ledger) Reopen(ctx context.Context, s Space) (bool, error) {
	if !s.Full || s.Quota == 0 || float64(s.Size) >= reopenShare*float64(s.Quota) {
		return false, nil
	}
	alarms, err := l.noSpace(ctx)
	for _, a := range alarms {
		if _, err := l.client.AlarmDisarm(ctx, a); err != nil {
			return false, fmt.Errorf("end etcd's alarm NOSPACE: %w", err)
		}
	}
	return err == nil, err
}

// Full reports whether etcd has the alarm that it is full.
func (l *Ledger) Full(ctx context.Context) (bool, error) {
	if l.client.Maintenance == nil { // an etcd of a simulation
		return false, nil
	}
	alarms, err := l.noSpace(ctx)
	return len(alarms) > 0, err
}

// noSpace returns the alarms of members that are full.
func (l *Ledger) noSpace(ctx context.Context) (found []*clientv3.AlarmMember, err error) {
	all, err := l.client.AlarmList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list etcd's alarms: %w", err)
	}
	for _, a := range all.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			found = append(found, (*clientv3.AlarmMember)(a))
		}
	}
	return found, nil
}

// History returns the oldest revision that etcd still has, and the latest one. The oldest
// moves only when somebody compacts etcd's history.
func (l *Ledger) History(ctx context.Context) (oldest, latest int64, err error) {
	if latest, err = l.Revision(ctx); err != nil {
		return 0, 0, err
	}
	_, err = l.client.Get(ctx, l.epochKey(), clientv3.WithRev(1))
	if !errors.Is(err, rpctypes.ErrCompacted) {
		if err != nil {
			return 0, 0, fmt.Errorf("read etcd's first revision: %w", err)
		}
		return 1, latest, nil
	}
	// Only a watch that begins too early is told what was compacted.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for resp := range l.client.Watch(ctx, l.epochKey(), clientv3.WithRev(1)) {
		if resp.CompactRevision > 0 {
			return resp.CompactRevision, latest, nil
		}
		if err := resp.Err(); err != nil {
			return 0, 0, fmt.Errorf("find etcd's oldest revision: %w", err)
		}
	}
	return 0, 0, fmt.Errorf("find etcd's oldest revision: %w", ctx.Err())
}
