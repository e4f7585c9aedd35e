package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging"
)

var _ messaging.Leader = (*Leader)(nil)

// LeaderOptions configure a Leader. The zero value suits a single server.
type LeaderOptions struct {
	// Shard is the leader's shard; messaging.Shard by default.
	Shard string
	// Replicas is the number of servers that store each stream: 1 (the default) for one
	// server, 3 in a cluster.
	Replicas int
	// MaxQueueBytes limits the queue of assignments; 256 MiB by default. A full queue
	// refuses assignments, which are published again later.
	MaxQueueBytes int64
	// AckWait is the time for which a fetched assignment is hidden from other workers. One
	// that is lost on its way holds up its study for so long; if a claim takes longer, a
	// second worker tries, and is refused. 10 s by default.
	AckWait time.Duration
	// MaxAckPending limits, for each pool, the assignments that are fetched and not yet
	// acknowledged. It should be at least twice the pool's slots; 20,000 by default.
	MaxAckPending int
	// CheckInterval is the time between checks that readers still read the same stream,
	// and that streams and consumers exist; 10 s by default.
	CheckInterval time.Duration
	// Timeout limits one request to the broker; 5 s by default.
	Timeout time.Duration
	// Logger receives the logs; none by default.
	Logger *slog.Logger
}

// Leader is the JetStream side of a shard's leader. It implements
// messaging.Leader.
type Leader struct {
	*client
	opts       LeaderOptions
	pools      sync.Map // by name of the pools whose consumers exist, when they were set up
	maintained sync.Once
	repairing  sync.Mutex // held while missing streams and consumers are created, and unused ones deleted

	// turn holds one token, whose holder may publish under the fence. Overlapping
	// publishes with the same fence would be refused.
	turn  chan struct{}
	epoch int64  // of the last successful Fence; 0 before it. Guarded by turn.
	fence uint64 // the sequence of the fence's message. Guarded by turn.
}

// NewLeader returns a leader's bus on a connection that the caller keeps owning. It
// sends nothing: candidates may hold one to ask whether the broker is Healthy.
func NewLeader(nc *nats.Conn, o LeaderOptions) (*Leader, error) {
	o.Shard = cmp.Or(o.Shard, messaging.Shard)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.MaxQueueBytes = cmp.Or(o.MaxQueueBytes, 256<<20)
	o.AckWait = cmp.Or(o.AckWait, 10*time.Second)
	o.MaxAckPending = cmp.Or(o.MaxAckPending, 20_000)
	o.CheckInterval = cmp.Or(o.CheckInterval, 10*time.Second)
	c, err := newClient(nc, o.Shard, o.Timeout, o.Logger)
	if err != nil {
		return nil, err
	}
	l := &Leader{client: c, opts: o, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l, nil
}

// Withdraw implements messaging.Leader. Repeating a withdrawal succeeds.
func (l *Leader) Withdraw(ctx context.Context, a *messaging.Assignment) error {
	m, err := l.message(a.Withdrawal())
	if err != nil {
		return err
	}
	m.Header.Set(jetstream.MsgIDHeader, m.Subject+"/"+messaging.LeaderName+"/"+a.Nonce)
	_, err = l.store(ctx, m)
	if !isSecond(err) {
		return err
	}
	mine, readErr := l.withdrawn(ctx, m.Subject, a.Nonce)
	switch {
	case readErr != nil:
		return fmt.Errorf("read the claim of %s: %w", m.Subject, readErr)
	case mine:
		return nil
	default:
		return fmt.Errorf("%w: %s", messaging.ErrClaimed, m.Subject)
	}
}

// withdrawn reports whether the stored claim is an earlier withdrawal by this leader.
func (l *Leader) withdrawn(ctx context.Context, subject, nonce string) (bool, error) {
	raw, err := l.last(ctx, streamClaim, subject)
	if err != nil || raw == nil {
		return false, err
	}
	var c messaging.Claim
	// An unreadable claim is not our withdrawal, and blocks one.
	readable := decode(raw.Subject, raw.Header, raw.Data, &c) == nil
	return readable && c.Worker == messaging.LeaderName && c.Nonce == nonce, nil
}

// last returns a stream's last message on a subject, which may have wildcards, or nil.
func (l *Leader) last(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	s, err := l.js.Stream(ctx, stream)
	if err != nil {
		return nil, l.explain(fmt.Errorf("stream %s: %w", stream, err))
	}
	raw, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, l.explain(fmt.Errorf("stream %s: last message on %s: %w", stream, subject, err))
	}
	return raw, nil
}

// Last implements messaging.Leader. It counts the shard's messages that exist: a reader
// reaches the sequence, or a later one if that message was replaced in the meantime.
func (l *Leader) Last(ctx context.Context, s messaging.Stream) (uint64, error) {
	of, err := readStreamOf(s)
	if err != nil {
		return 0, err
	}
	raw, err := l.last(ctx, of.name, messaging.Filter(of.kind, l.shard))
	if err != nil || raw == nil {
		return 0, err
	}
	return raw.Sequence, nil
}

// readStream is a stream that leaders read, its name and the kind of its messages.
type readStream struct {
	stream messaging.Stream
	name   string
	kind   messaging.Kind
}

var readStreams = []readStream{
	{messaging.StreamClaim, streamClaim, messaging.KindClaim},
	{messaging.StreamResult, streamResult, messaging.KindResult},
	{messaging.StreamMetric, streamMetric, messaging.KindMetric},
}

// readStreamOf returns the stream that a caller names.
func readStreamOf(s messaging.Stream) (readStream, error) {
	for _, r := range readStreams {
		if r.stream == s {
			return r, nil
		}
	}
	return readStream{}, fmt.Errorf("stream %q: must be %s, %s or %s", s, messaging.StreamClaim, messaging.StreamResult,
		messaging.StreamMetric)
}

// Control implements messaging.Leader.
func (l *Leader) Control(ctx context.Context, c *messaging.Control) error {
	m, err := l.message(c)
	if err != nil {
		return err
	}
	return l.send(ctx, m)
}

// Bury implements messaging.Leader.
func (l *Leader) Bury(ctx context.Context, subject, reason string, raw []byte) error {
	return l.bury(ctx, messaging.LeaderName, subject, reason, raw)
}

// bury stores a dead letter, signed by the one who found it.
func (c *client) bury(ctx context.Context, by, subject, reason string, raw []byte) error {
	m := nats.NewMsg(messaging.Subject{Kind: messaging.KindDeadLetter, Shard: c.shard, Worker: by}.String())
	m.Data = raw
	m.Header.Set(messaging.HeaderSubject, oneLine(subject))
	m.Header.Set(messaging.HeaderReason, oneLine(reason))
	_, err := c.store(ctx, m)
	return err
}

// oneLine makes any text usable as a header's value.
func oneLine(s string) string {
	const most = 1 << 10
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// Purge implements messaging.Leader. It deletes assignments first: once a study's
// claims are gone, a queued assignment could be claimed again.
func (l *Leader) Purge(ctx context.Context, study string, all bool) error {
	if !messaging.ValidToken(study) {
		return fmt.Errorf("study %q: not a valid token", study)
	}
	targets := []readStream{{name: streamAssign, kind: messaging.KindAssign}}
	if all {
		targets = append(targets, readStreams...)
	}
	for _, t := range targets {
		for _, filter := range messaging.StudyFilters(t.kind, l.shard, study) {
			if err := l.purge(ctx, t.name, filter); err != nil {
				return l.explain(fmt.Errorf("purge %s of study %s: %w", t.name, study, err))
			}
		}
	}
	return nil
}

func (l *Leader) purge(ctx context.Context, stream, filter string) error {
	ctx, cancel := l.request(ctx)
	defer cancel()
	s, err := l.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(filter))
}

// Healthy implements messaging.Leader. It asks JetStream, not only the server.
func (l *Leader) Healthy(ctx context.Context) error {
	ctx, cancel := l.request(ctx)
	defer cancel()
	if _, err := l.js.AccountInfo(ctx); err != nil {
		return l.explain(fmt.Errorf("jetstream does not answer: %w", err))
	}
	return nil
}
