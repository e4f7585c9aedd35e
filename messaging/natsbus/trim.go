package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Trim implements messaging.Leader.
func (l *Leader) Trim(ctx context.Context, s messaging.Stream, study string, committed messaging.Cursor, below uint64) error {
	of, err := readStreamOf(s)
	if err != nil {
		return err
	}
	name, filters := of.name, []string{messaging.Filter(of.kind, l.shard)}
	if study != "" {
		if !messaging.ValidToken(study) {
			return fmt.Errorf("study %q: not a valid token", study)
		}
		filters = messaging.StudyFilters(of.kind, l.shard, study)
	}
	ctx, cancel := l.request(ctx)
	defer cancel()
	stream, err := l.js.Stream(ctx, name)
	if err != nil {
		return l.explain(fmt.Errorf("trim %s: %w", name, err))
	}
	switch same, err := l.same(ctx, stream, committed); {
	case err != nil:
		return l.explain(fmt.Errorf("trim %s: %w", name, err))
	case !same || below == 0:
		return nil
	}
	below = min(below, committed.Sequence)
	for _, filter := range filters {
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(filter), jetstream.WithPurgeSequence(below)); err != nil {
			return l.explain(fmt.Errorf("trim %s before message %d: %w", name, below, err))
		}
	}
	return nil
}

// same reports whether a cursor was taken from this stream, as far as the stream tells.
func (l *Leader) same(ctx context.Context, stream jetstream.Stream, c messaging.Cursor) (bool, error) {
	info := stream.CachedInfo()
	if !c.Created.Equal(info.Created) || info.State.LastSeq < c.Sequence || c.Sequence == 0 {
		return false, nil
	}
	raw, err := stream.GetMsg(ctx, c.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil // replaced by a newer message, or purged
	}
	if err != nil {
		return false, err
	}
	return raw.Time.Equal(c.Timestamp), nil
}

// Waiting implements messaging.Leader.
func (l *Leader) Waiting(ctx context.Context, study string) ([]messaging.AttemptID, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	stream, err := l.js.Stream(ctx, streamAssign)
	if err != nil {
		return nil, l.explain(fmt.Errorf("look at the queue: %w", err))
	}
	var ids []messaging.AttemptID
	for _, filter := range messaging.StudyFilters(messaging.KindAssign, l.shard, study) {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return nil, l.explain(fmt.Errorf("look at the queue of study %s: %w", study, err))
		}
		for subject := range info.State.Subjects {
			if s, err := messaging.ParseSubject(subject); err == nil {
				ids = append(ids, s.ID)
			}
		}
	}
	return ids, nil
}

// Retract implements messaging.Leader.
func (l *Leader) Retract(ctx context.Context, ids []messaging.AttemptID) error {
	for _, id := range ids {
		if err := l.purge(ctx, streamAssign, messaging.AttemptFilter(messaging.KindAssign, l.shard, id)); err != nil {
			return l.explain(fmt.Errorf("retract trial %d attempt %d of study %s: %w", id.Trial, id.Attempt, id.Study, err))
		}
	}
	return nil
}

// FirstClaim implements messaging.Leader.
func (l *Leader) FirstClaim(ctx context.Context, ids []messaging.AttemptID) (first uint64, err error) {
	for _, id := range ids {
		sequence, err := l.claimOf(ctx, id)
		if err != nil {
			return 0, l.explain(fmt.Errorf("find the claim of trial %d attempt %d of study %s: %w", id.Trial, id.Attempt, id.Study, err))
		}
		if sequence != 0 && (first == 0 || sequence < first) {
			first = sequence
		}
	}
	return first, nil
}

// claimOf returns the sequence of the first claim of an attempt, in whatever pool; 0 if
// there is none.
func (l *Leader) claimOf(ctx context.Context, id messaging.AttemptID) (uint64, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	stream, err := l.js.Stream(ctx, streamClaim)
	if err != nil {
		return 0, err
	}
	raw, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(messaging.AttemptFilter(messaging.KindClaim, l.shard, id)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return raw.Sequence, nil
}

// freshPool is how long a pool's consumer is kept without a study: one that was just set
// up is for a study that is being created.
const freshPool = time.Minute

// KeepPools implements messaging.Leader.
func (l *Leader) KeepPools(ctx context.Context, pools []string) error {
	ctx, cancel := l.request(ctx)
	defer cancel()
	l.repairing.Lock()
	defer l.repairing.Unlock()
	kept := map[string]bool{}
	for _, pool := range pools {
		kept[consumerName(l.shard, pool)] = true
	}
	l.pools.Range(func(pool, at any) bool {
		if since, ok := at.(time.Time); ok && time.Since(since) < freshPool {
			kept[consumerName(l.shard, pool.(string))] = true
		}
		return true
	})
	stream, err := l.js.Stream(ctx, streamAssign)
	if err != nil {
		return l.explain(fmt.Errorf("look at the pools: %w", err))
	}
	var unused []string
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if strings.HasPrefix(name, consumerName(l.shard, "")) && !kept[name] {
			unused = append(unused, name)
		}
	}
	if err := names.Err(); err != nil {
		return l.explain(fmt.Errorf("list the pools: %w", err))
	}
	for _, name := range unused {
		l.pools.Delete(strings.TrimPrefix(name, consumerName(l.shard, "")))
		if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return l.explain(fmt.Errorf("delete the unused consumer %s: %w", name, err))
		}
	}
	return nil
}
