package natsbus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/messagingtest"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names of the streams, as an administrator sees them.
var names = map[messaging.Stream]string{
	messaging.StreamClaim:  "FANTASIA_CLAIM",
	messaging.StreamResult: "FANTASIA_RESULT",
	messaging.StreamMetric: "FANTASIA_METRIC",
}

func TestConformance(t *testing.T) { conform(t, "") }

// The buses behave the same if workers have their own account.
func TestConformanceAcrossAccounts(t *testing.T) {
	conform(t, accounts(t, natsbus.Accounts{Pools: []string{pool, "gpu"}}))
}

func conform(t *testing.T, accounts string) {
	t.Helper()
	t.Parallel()
	messagingtest.Run(t, func(t *testing.T) *messagingtest.Bus {
		b := startBrokerWith(t, accounts)
		js := b.js()
		options := natsbus.LeaderOptions{AckWait: 500 * time.Millisecond, CheckInterval: 100 * time.Millisecond}
		return &messagingtest.Bus{
			Leader:  func() messaging.Leader { return b.leader(options) },
			Worker:  func(name, pool string) messaging.Worker { return b.worker(name, pool) },
			AckWait: options.AckWait,
			Inject: func(subject string, raw []byte) {
				if _, err := js.Publish(t.Context(), subject, raw); err != nil {
					t.Fatal(err)
				}
			},
			Recreate: func(s messaging.Stream) {
				if err := js.DeleteStream(t.Context(), names[s]); err != nil {
					t.Fatal(err)
				}
				// The leader of the test restores it, as in production.
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				eventually(ctx, t, "restore the stream", func() error {
					_, err := js.Stream(ctx, names[s])
					return err
				})
			},
			DeadLetters: func() [][]byte { return deadLetters(t, js) },
		}
	})
}

// deadLetters reads the dead-letter queue.
func deadLetters(t *testing.T, js jetstream.JetStream) (raws [][]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, "FANTASIA_DLQ")
	if err != nil {
		t.Fatal(err)
	}
	for sequence := uint64(1); sequence <= s.CachedInfo().State.LastSeq; sequence++ {
		m, err := s.GetMsg(ctx, sequence)
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, m.Data)
	}
	return raws
}
