package membus_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/messagingtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	messagingtest.Run(t, func(t *testing.T) *messagingtest.Bus {
		const ackWait = 500 * time.Millisecond
		b := membus.New(membus.Options{AckWait: ackWait})
		return &messagingtest.Bus{
			Leader: func() messaging.Leader {
				l := b.Leader()
				closeAtEnd(t, l)
				return l
			},
			Worker: func(name, pool string) messaging.Worker {
				w, err := b.Worker(name, pool)
				if err != nil {
					t.Fatal(err)
				}
				closeAtEnd(t, w)
				return w
			},
			Inject: func(subject string, raw []byte) {
				if !b.Inject(subject, raw) {
					t.Fatalf("nothing takes %s", subject)
				}
			},
			Recreate: b.Recreate,
			DeadLetters: func() (raws [][]byte) {
				for _, d := range b.DeadLetters() {
					raws = append(raws, d.Raw)
				}
				return raws
			},
			AckWait: ackWait,
		}
	})
}

func closeAtEnd(t *testing.T, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
