package natsbus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

func TestOptions(t *testing.T) {
	b := startBroker(t)
	nc := b.connect("x")
	for _, o := range []natsbus.WorkerOptions{
		{Name: "leader", Pool: pool}, {Name: "a.b", Pool: pool}, {Pool: pool}, {Name: "w"}, {Name: "w", Pool: "*"},
		{Name: "w", Pool: pool, Shard: "a b"},
	} {
		if _, err := natsbus.NewWorker(nc, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := natsbus.NewLeader(nc, natsbus.LeaderOptions{Shard: ">"}); err == nil {
		t.Error("shard > was taken")
	}
	o := nc.Opts
	if o.MaxReconnect != -1 || o.ReconnectBufSize != -1 || o.PingInterval != 5*time.Second || o.MaxPingsOut != 2 ||
		o.InboxPrefix != "_INBOX_x" {
		t.Errorf("connection options: %d reconnects, %d bytes of buffer, ping every %v × %d, inbox %s",
			o.MaxReconnect, o.ReconnectBufSize, o.PingInterval, o.MaxPingsOut, o.InboxPrefix)
	}
}

// The streams are as the wire contract has them.
func TestStreamConfiguration(t *testing.T) {
	ctx := patient(t)
	b := startBroker(t)
	l := b.leader(natsbus.LeaderOptions{})
	must(t, l.Setup(ctx, []string{pool}))
	must(t, l.Setup(ctx, []string{pool, "gpu"}))
	js := b.js()
	const all, day = -1, 24 * time.Hour
	tests := []struct {
		name       string
		retention  jetstream.RetentionPolicy
		discard    jetstream.DiscardPolicy
		newPer     bool
		perSubject int64
		age        time.Duration
		atomic     bool
		bytes      int64
	}{
		{"FANTASIA_ASSIGN", jetstream.WorkQueuePolicy, jetstream.DiscardNew, false, 1, 0, true, 256 << 20},
		{"FANTASIA_CLAIM", jetstream.LimitsPolicy, jetstream.DiscardNew, true, 1, 0, false, all},
		{"FANTASIA_RESULT", jetstream.LimitsPolicy, jetstream.DiscardNew, false, 1, 0, false, all},
		{"FANTASIA_METRIC", jetstream.LimitsPolicy, jetstream.DiscardOld, false, 10_000, 7 * day, false, 256 << 20},
		{"FANTASIA_DLQ", jetstream.LimitsPolicy, jetstream.DiscardOld, false, all, 30 * day, false, 128 << 20},
	}
	for _, test := range tests {
		s, err := js.Stream(ctx, test.name)
		must(t, err)
		c := s.CachedInfo().Config
		if c.Retention != test.retention || c.Discard != test.discard || c.DiscardNewPerSubject != test.newPer ||
			c.MaxMsgsPerSubject != test.perSubject || c.MaxAge != test.age || c.AllowAtomicPublish != test.atomic || c.MaxBytes != test.bytes ||
			c.Storage != jetstream.FileStorage || c.MaxMsgSize < 256<<10 || c.AllowDirect {
			t.Errorf("%s: %+v", test.name, c)
		}
	}
	for _, name := range []string{pool, "gpu"} {
		c, err := js.Consumer(ctx, "FANTASIA_ASSIGN", "pool_0_"+name)
		must(t, err)
		got := c.CachedInfo().Config
		if got.AckPolicy != jetstream.AckExplicitPolicy || got.AckWait != 10*time.Second || got.MaxDeliver != 20 ||
			got.MaxWaiting != 16384 || got.InactiveThreshold != 0 || got.FilterSubject != "fantasia.assign.0."+name+".>" {
			t.Errorf("consumer of %s: %+v", name, got)
		}
	}
}

// The largest envelope fits the stream with its headers.
func TestLargestEnvelope(t *testing.T) {
	ctx := patient(t)
	b := startBroker(t)
	l := lead(ctx, t, b, 1)
	a := assignment(1)
	a.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	a.Tracestate = "a=" + strings.Repeat("x", 510)
	data, err := messaging.Encode(a)
	must(t, err)
	a.Checkpoint = strings.Repeat("x", messaging.MaxEnvelope-len(data)-len(`"checkpoint":"",`))
	must(t, l.Assign(ctx, []*messaging.Assignment{a}))
	a.Checkpoint += "xx"
	if _, err := messaging.Encode(a); !errors.Is(err, messaging.ErrTooLarge) {
		t.Errorf("two bytes more: %v, want ErrTooLarge", err)
	}
}

// A pool that no study uses loses its consumer once it is old, and gets it back when it
// is set up again.
func TestUnusedPoolsAreDeleted(t *testing.T) {
	ctx := patient(t)
	b := startBroker(t)
	before := b.leader(natsbus.LeaderOptions{})
	must(t, before.Setup(ctx, []string{pool, "used", "unused"}))
	// The next leader does not know when they were set up: long ago.
	l := lead(ctx, t, b, 1)
	must(t, l.KeepPools(ctx, []string{"used"}))
	js := b.js()
	for name, there := range map[string]bool{pool: true, "used": true, "unused": false} {
		_, err := js.Consumer(ctx, "FANTASIA_ASSIGN", "pool_0_"+name)
		if (err == nil) != there {
			t.Errorf("consumer of %s: %v, want it there: %v", name, err, there)
		}
	}
	must(t, l.Setup(ctx, []string{"unused"}))
	must(t, l.KeepPools(ctx, nil))
	_, err := js.Consumer(ctx, "FANTASIA_ASSIGN", "pool_0_unused")
	must(t, err)
}
