package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// healthEvery is how often a leader asks whether the broker answers.
const healthEvery = time.Second

// watchBroker checks once a second whether the broker answers. During an outage no
// heartbeat can arrive, so no worker is given up. A leader that cannot reach the
// broker for two of its leases steps down, since another replica may reach it. If none can, none is
// elected: see Coordinator.fit.
func (l *leader) watchBroker(ctx context.Context) error {
	patience := 2 * l.c.o.LeaseTTL
	var since time.Time // of the outage; zero for none
	for range backoff.Ticks(ctx, healthEvery) {
		call, cancel := context.WithTimeout(ctx, l.c.o.LeaseTTL)
		asked := time.Now()
		err := l.c.o.Bus.Healthy(call)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && since.IsZero():
			continue
		case err == nil:
			l.log.Info("the broker answers again", "after", time.Since(since))
			since = time.Time{}
		case since.IsZero():
			l.log.Warn("the broker does not answer", telemetry.LogError, err)
			since = asked
		case time.Since(since) > patience:
			return fmt.Errorf("no answer for %v: %w", time.Since(since).Round(time.Second), err)
		}
		// Also when it answers again: heartbeats of the outage are lost, and each worker gets a whole lease to be heard.
		l.inbox.Post(ctx, func(_ context.Context, now time.Time) error { l.workers.ListenSince(now); return nil })
	}
	return nil
}
