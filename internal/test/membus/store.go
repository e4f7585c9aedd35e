package membus

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

const (
	// dedupe is the time for which a claim's id is remembered.
	dedupe = 2 * time.Minute
	// maxDead is the largest size of a dead letter in bytes, as on JetStream.
	maxDead = 264 << 10
)

// message is what is sent: bytes, and the headers that the buses use.
type message struct {
	subject string
	data    []byte
	trace   messaging.TraceContext
}

// newMessage encodes an envelope.
func newMessage(e messaging.Envelope) (message, error) {
	data, err := messaging.Encode(e)
	if err != nil {
		return message{}, err
	}
	m := message{subject: e.Subject(messaging.Shard), data: data}
	if t, ok := e.(traced); ok {
		m.trace = t.Trace().Sane()
	}
	return m, nil
}

// decode reads the message into an envelope.
func (m message) decode(e messaging.Envelope) error {
	if err := messaging.DecodeFrom(m.subject, m.data, e); err != nil {
		return err
	}
	if t, ok := e.(traced); ok {
		*t.Trace() = m.trace
	}
	return nil
}

type traced interface {
	Trace() *messaging.TraceContext
}

// stream is read in order.
type stream struct {
	created time.Time
	last    uint64
	stamp   time.Time // the latest time that any record got, rewound or not
	records []record  // by rising sequence
}

type record struct {
	message
	sequence uint64
	at       time.Time
}

// newStream returns an empty stream, created later than the one that it replaces even
// if the clock stands still.
func newStream(before time.Time) *stream {
	created := time.Now().UTC()
	if !created.After(before) {
		created = before.Add(1)
	}
	return &stream{created: created}
}

func (s *stream) append(m message) {
	at := time.Now().UTC()
	if !at.After(s.stamp) {
		at = s.stamp.Add(1)
	}
	s.stamp = at
	s.last++
	s.records = append(s.records, record{message: m, sequence: s.last, at: at})
}

// replace appends a message that replaces the one on its subject.
func (s *stream) replace(m message) {
	s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.subject == m.subject })
	s.append(m)
}

func (s *stream) has(subject string) bool {
	return slices.ContainsFunc(s.records, func(r record) bool { return r.subject == subject })
}

// after returns the first record after the sequence, or nil.
func (s *stream) after(sequence uint64) *record {
	i, _ := slices.BinarySearchFunc(s.records, sequence+1, bySequence)
	if i == len(s.records) {
		return nil
	}
	return &s.records[i]
}

// at returns the record at the sequence, or nil if it is gone.
func (s *stream) at(sequence uint64) *record {
	i, ok := slices.BinarySearchFunc(s.records, sequence, bySequence)
	if !ok {
		return nil
	}
	return &s.records[i]
}

func bySequence(r record, sequence uint64) int { return cmp.Compare(r.sequence, sequence) }

func (s *stream) rewind(sequence uint64) {
	s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.sequence > sequence })
	s.last = min(s.last, sequence)
}

// purge deletes a study's records; sequences are not reused.
func (s *stream) purge(study string) {
	s.records = slices.DeleteFunc(s.records, func(r record) bool { return ofStudy(r.subject, study) })
}

func ofStudy(subject, study string) bool {
	s, err := messaging.ParseSubject(subject)
	return err == nil && s.ID.Study == study
}

// queued is an assignment that is not yet acknowledged.
type queued struct {
	message
	pool       string
	hidden     time.Time // until when no other worker gets it
	deliveries int
	spent      bool // delivered too often: it stays, but is not delivered
}

// enqueue adds an assignment and replaces one on its subject. The caller MUST hold mu.
func (b *Broker) enqueue(pool string, m message) {
	b.queue = slices.DeleteFunc(b.queue, func(q *queued) bool { return q.subject == m.subject })
	b.queue = append(b.queue, &queued{message: m, pool: pool})
}

// dequeue returns the pool's first visible assignment. If there is none, it returns the
// time when the next one becomes visible, or zero if none will by itself. The caller
// MUST hold mu.
func (b *Broker) dequeue(pool string) (q *queued, next time.Time) {
	now := time.Now()
	for _, q := range b.queue {
		if q.pool != pool || q.spent {
			continue
		}
		if q.hidden.After(now) {
			if next.IsZero() || q.hidden.Before(next) {
				next = q.hidden
			}
			continue
		}
		if q.deliveries == b.opts.MaxDeliver {
			q.spent = true
			b.bury("broker", q.subject, "delivered too often", q.data)
			continue
		}
		q.deliveries++
		q.hidden = now.Add(b.opts.AckWait)
		return q, time.Time{}
	}
	return nil, next
}

// remove deletes an assignment from the queue, even if a worker holds it. The caller
// MUST hold mu.
func (b *Broker) remove(q *queued) {
	b.queue = slices.DeleteFunc(b.queue, func(other *queued) bool { return other == q })
}

// remembers reports whether a claim's id was stored recently. The caller MUST hold mu.
func (b *Broker) remembers(id string) bool {
	at, ok := b.claimed[id]
	return ok && time.Since(at) < dedupe
}

// bury stores a dead letter. The caller MUST hold mu.
func (b *Broker) bury(by, subject, reason string, raw []byte) {
	b.dead = append(b.dead, DeadLetter{By: by, Subject: subject, Reason: strings.Clone(reason), Raw: raw})
}
