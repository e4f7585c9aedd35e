package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// When JetStream's store is full, it refuses dead letters and results with an error, and
// takes both again once there is room.
func TestAFullStoreRefusesMessages(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	// The streams reserve 385 MiB, and the server counts what is stored against its limit.
	server := testenv.StartNATS(t, testenv.NATSConfig{
		Extra: fmt.Sprintf("jetstream { store_dir: %q, max_file_store: 386MB }", t.TempDir()),
	})
	l := newLeader(t, natsbus.LeaderOptions{MaxQueueBytes: 1 << 20}, server.URL)
	must(t, l.Setup(ctx, []string{pool}))
	must(t, l.Fence(ctx, 1))
	w := newWorker(t, "w", server.URL)
	raw := []byte("a message that nobody can read")
	must(t, l.Bury(ctx, "fantasia.result.0.s", "unreadable", raw))

	js, err := jetstream.New(server.Connect())
	must(t, err)
	filler, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "filler", Subjects: []string{"filler"}})
	must(t, err)
	payload := make([]byte, 1<<20-1<<10)
	for err == nil && ctx.Err() == nil {
		_, err = js.Publish(ctx, "filler", payload)
	}
	must(t, ctx.Err())

	refused := func(what string, f func(context.Context) error) {
		t.Helper()
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := f(bounded); err == nil {
			t.Errorf("%s was taken by a store without room", what)
		} else if _, ok := errors.AsType[*jetstream.APIError](err); !ok {
			t.Errorf("%s: %v; want the server's answer", what, err)
		}
	}
	bury := func(ctx context.Context) error { return l.Bury(ctx, "fantasia.result.0.s", "unreadable", raw) }
	publish := func(ctx context.Context) error { return w.PublishResult(ctx, result(1, "w")) }
	refused("a dead letter", bury)
	refused("a result", publish)
	refused("the fence of a new leader", func(ctx context.Context) error { return l.Fence(ctx, 2) })

	must(t, filler.Purge(ctx))
	eventually(ctx, t, "bury with room", func() error { return bury(ctx) })
	eventually(ctx, t, "publish with room", func() error { return publish(ctx) })
	eventually(ctx, t, "fence with room", func() error { return l.Fence(ctx, 2) })
	dead, err := js.Stream(ctx, "FANTASIA_DLQ")
	must(t, err)
	info, err := dead.Info(ctx)
	must(t, err)
	if info.State.Msgs != 2 {
		t.Errorf("the dead-letter queue has %d messages, want the 2 that it took", info.State.Msgs)
	}
}
