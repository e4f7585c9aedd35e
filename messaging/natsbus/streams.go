package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// The streams.
const (
	streamAssign = "FANTASIA_ASSIGN"
	streamClaim  = "FANTASIA_CLAIM"
	streamResult = "FANTASIA_RESULT"
	streamMetric = "FANTASIA_METRIC"
	streamDead   = "FANTASIA_DLQ"
)

const (
	// maxMessage is the largest size of a message in bytes, including headers.
	maxMessage = 256 << 10
	// maxDead leaves room for the headers that a dead letter gets.
	maxDead = maxMessage + 8<<10
	// maxWaiting is the largest number of fetches that wait at a pool's consumer. The
	// server refuses to raise it later.
	maxWaiting = 16384
	// maxDeliver is the largest number of deliveries of an unacknowledged assignment.
	maxDeliver = 20
	// maxMetricBytes is the most that attempts' reports may take. The leader reads
	// them at once, so this is about a million reports while none leads.
	maxMetricBytes = 256 << 20
	// maxDeadBytes is the most that dead letters may take; the oldest go first.
	maxDeadBytes = 128 << 20
	// dedupe is the time for which a claim's id is remembered.
	dedupe = 2 * time.Minute
)

// streams returns the configurations of all streams. One set serves all shards.
func streams(o LeaderOptions) []jetstream.StreamConfig {
	common := jetstream.StreamConfig{
		Storage:    jetstream.FileStorage,
		Replicas:   o.Replicas,
		MaxMsgSize: maxMessage,
		Duplicates: dedupe,
		MaxMsgs:    -1,
		MaxBytes:   -1,
	}
	assign, claim, result, metric, dead := common, common, common, common, common

	assign.Name = streamAssign
	assign.Description = "Fantasia: attempts that wait for a worker, and the fence of each shard"
	assign.Subjects = []string{"fantasia.assign.>", "fantasia.fence.*"}
	assign.Retention = jetstream.WorkQueuePolicy
	assign.Discard = jetstream.DiscardNew
	assign.MaxBytes = o.MaxQueueBytes
	// Publishing an attempt again replaces its message: a pool without workers does not
	// fill up, and the count of deliveries starts over.
	assign.MaxMsgsPerSubject = 1
	assign.AllowAtomicPublish = true
	// A fence is identified by its sequence. In a recreated stream, another leader's
	// fence must not get the sequence of an old one, which would let the old leader in.
	// Sequences therefore start at the time in microseconds, which no stream can catch
	// up with.
	assign.FirstSeq = uint64(time.Now().UnixMicro())

	claim.Name = streamClaim
	claim.Description = "Fantasia: the first claim of each attempt"
	claim.Subjects = []string{"fantasia.claim.>"}
	claim.MaxMsgsPerSubject = 1
	claim.Discard = jetstream.DiscardNew
	claim.DiscardNewPerSubject = true

	// Sending a result again replaces the first one and assigns a new sequence, so that
	// the leader reads it again and repeats its receipt.
	result.Name = streamResult
	result.Description = "Fantasia: the last result of each attempt and worker"
	result.Subjects = []string{"fantasia.result.>"}
	result.MaxMsgsPerSubject = 1
	result.Discard = jetstream.DiscardNew

	metric.Name = streamMetric
	metric.Description = "Fantasia: what attempts report while they run"
	metric.Subjects = []string{"fantasia.metric.>"}
	metric.Discard = jetstream.DiscardOld
	metric.MaxAge = 7 * 24 * time.Hour
	metric.MaxMsgsPerSubject = 10_000
	metric.MaxBytes = maxMetricBytes

	dead.Name = streamDead
	dead.Description = "Fantasia: unusable messages, and assignments that no worker took"
	dead.Subjects = []string{
		"fantasia.dlq.>",
		"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + streamAssign + ".>",
		"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED." + streamAssign + ".>",
	}
	dead.Discard = jetstream.DiscardOld
	dead.MaxAge = 30 * 24 * time.Hour
	dead.MaxMsgSize = maxDead
	dead.MaxBytes = maxDeadBytes
	return []jetstream.StreamConfig{assign, claim, result, metric, dead}
}

// consumerName is the name of a pool's consumer.
func consumerName(shard, pool string) string { return "pool_" + shard + "_" + pool }

// poolConsumer returns the consumer from which a pool's workers fetch.
func poolConsumer(o LeaderOptions, pool string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       consumerName(o.Shard, pool),
		FilterSubject: messaging.PoolFilter(o.Shard, pool),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       o.AckWait,
		MaxDeliver:    maxDeliver,
		MaxAckPending: o.MaxAckPending,
		MaxWaiting:    maxWaiting,
	}
}

// Setup implements messaging.Leader. From the first call until Close, it also restores
// what an administrator deletes, within the check interval.
func (l *Leader) Setup(ctx context.Context, pools []string) error {
	for _, pool := range pools {
		if !messaging.ValidToken(pool) {
			return fmt.Errorf("pool %q: not a valid token", pool)
		}
	}
	ctx, cancel := l.during(ctx)
	defer cancel()
	for _, cfg := range streams(l.opts) {
		if err := l.createStream(ctx, cfg); err != nil {
			return l.explain(err)
		}
	}
	if err := l.createPools(ctx, pools); err != nil {
		return l.explain(err)
	}
	var err error
	l.maintained.Do(func() { err = l.spawn(l.maintain) })
	return err
}

// createStream creates the stream, or updates an existing one.
func (l *Leader) createStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, err := l.js.CreateStream(ctx, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		err = l.updateStream(ctx, cfg)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", cfg.Name, err)
	}
	return nil
}

func (l *Leader) updateStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	s, err := l.js.Stream(ctx, cfg.Name)
	if err != nil {
		return err
	}
	cfg.FirstSeq = s.CachedInfo().Config.FirstSeq
	_, err = l.js.UpdateStream(ctx, cfg)
	return err
}

// createPools creates consumers. KeepPools must not delete them meanwhile.
func (l *Leader) createPools(ctx context.Context, pools []string) error {
	l.repairing.Lock()
	defer l.repairing.Unlock()
	for _, pool := range pools {
		if err := l.createConsumer(ctx, pool); err != nil {
			return err
		}
		l.pools.Store(pool, time.Now())
	}
	return nil
}

func (l *Leader) createConsumer(ctx context.Context, pool string) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if _, err := l.js.CreateOrUpdateConsumer(ctx, streamAssign, poolConsumer(l.opts, pool)); err != nil {
		return fmt.Errorf("consumer of pool %s: %w", pool, err)
	}
	return nil
}

// maintain restores what is missing, until the bus is closed.
func (l *Leader) maintain() {
	for range backoff.Ticks(l.life, l.opts.CheckInterval) {
		if err := l.repair(l.life); err != nil && l.life.Err() == nil {
			l.log.Warn("cannot check the streams", "error", err)
		}
	}
}

// missingFor is how long a stream must have been missing before it is created again.
// nats-server (2.15.2) forgets a deleted stream before it removes its folder. A stream
// that is created between the two can have the old messages, or answer nobody.
const missingFor = 200 * time.Millisecond

// repair creates missing streams and consumers; it does not change existing ones.
func (l *Leader) repair(ctx context.Context) error {
	l.repairing.Lock()
	defer l.repairing.Unlock()
	for _, cfg := range streams(l.opts) {
		err := l.exists(ctx, func(ctx context.Context) error {
			_, err := l.js.Stream(ctx, cfg.Name)
			return err
		})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			l.log.Warn("restoring a missing stream", "stream", cfg.Name)
			select {
			case <-time.After(missingFor):
				err = l.createStream(ctx, cfg)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			return err
		}
	}
	var failed error
	l.pools.Range(func(key, _ any) bool {
		pool := key.(string)
		err := l.exists(ctx, func(ctx context.Context) error {
			_, err := l.js.Consumer(ctx, streamAssign, consumerName(l.shard, pool))
			return err
		})
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			l.log.Warn("restoring a missing consumer", "pool", pool)
			err = l.createConsumer(ctx, pool)
		}
		failed = err
		return err == nil
	})
	return failed
}

func (l *Leader) exists(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return ask(ctx)
}
