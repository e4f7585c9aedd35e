package membus

import (
	"context"
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// withBroker calls do with the broker's lock.
func (l *Leader) withBroker(ctx context.Context, do func(b *Broker) error) error {
	if err := l.alive(ctx); err != nil {
		return err
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return do(l.b)
}

// Trim implements messaging.Leader.
func (l *Leader) Trim(ctx context.Context, s messaging.Stream, study string, committed messaging.Cursor, below uint64) error {
	if study != "" && !messaging.ValidToken(study) {
		return fmt.Errorf("study %q: not a valid token", study)
	}
	return l.withBroker(ctx, func(b *Broker) error {
		j := b.streams[s]
		if j == nil {
			return errStream(s)
		}
		if at := j.at(committed.Sequence); !committed.Created.Equal(j.created) || committed.Sequence > j.last ||
			at != nil && !at.at.Equal(committed.Timestamp) {
			return nil
		}
		j.records = slices.DeleteFunc(j.records, func(r record) bool {
			return r.sequence < min(below, committed.Sequence) && (study == "" || ofStudy(r.subject, study))
		})
		return nil
	})
}

// Waiting implements messaging.Leader.
func (l *Leader) Waiting(ctx context.Context, study string) (ids []messaging.AttemptID, err error) {
	err = l.withBroker(ctx, func(b *Broker) error {
		for _, q := range b.queue {
			if s, err := messaging.ParseSubject(q.subject); err == nil && s.ID.Study == study {
				ids = append(ids, s.ID)
			}
		}
		return nil
	})
	return ids, err
}

// Retract implements messaging.Leader.
func (l *Leader) Retract(ctx context.Context, ids []messaging.AttemptID) error {
	return l.withBroker(ctx, func(b *Broker) error {
		b.queue = slices.DeleteFunc(b.queue, func(q *queued) bool { return names(q.subject, ids) })
		return nil
	})
}

// names reports whether a subject is of one of the attempts, whatever their nonces.
func names(subject string, ids []messaging.AttemptID) bool {
	s, err := messaging.ParseSubject(subject)
	return err == nil && slices.ContainsFunc(ids, func(id messaging.AttemptID) bool {
		id.Nonce = ""
		return id == s.ID
	})
}

// FirstClaim implements messaging.Leader.
func (l *Leader) FirstClaim(ctx context.Context, ids []messaging.AttemptID) (first uint64, err error) {
	err = l.withBroker(ctx, func(b *Broker) error {
		if i := slices.IndexFunc(b.claims().records, func(r record) bool { return names(r.subject, ids) }); i >= 0 {
			first = b.claims().records[i].sequence
		}
		return nil
	})
	return first, err
}

// KeepPools implements messaging.Leader. Pools cost nothing here, so they all stay.
func (l *Leader) KeepPools(ctx context.Context, _ []string) error {
	return l.withBroker(ctx, func(*Broker) error { return nil })
}
