package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// archiveTimeout bounds one call of the dead-letter queue: the loop waits for it.
	archiveTimeout = 3 * time.Second
	// maxCut is how many bytes are archived of a message that the dead-letter queue
	// does not take as a whole.
	maxCut = 4 << 10
)

// deadLetters keeps messages that change nothing for people to see.
type deadLetters struct {
	log     *slog.Logger
	metrics *metrics
	put     func(ctx context.Context, subject, reason string, raw []byte) error // messaging.Leader.Archive
}

// archive puts a message into the dead-letter queue. It is called before the
// cursor moves past the message, so that a crash archives it twice rather than
// never. A queue that does not take the message ends no term, since it would
// refuse it to every leader: the message is logged, counted and left aside.
func (d deadLetters) archive(ctx context.Context, subject, reason string, raw []byte) {
	err := d.bury(ctx, subject, reason, raw)
	if errors.Is(err, messaging.ErrTooLarge) {
		err = d.bury(ctx, subject, "cut short: "+reason, raw[:min(len(raw), maxCut)])
	}
	if err == nil {
		return
	}
	d.log.Error("a message was not put into the dead-letter queue", "subject", subject, telemetry.LogReason, reason,
		"bytes", len(raw), telemetry.LogError, err)
	d.metrics.unarchived.Add(ctx, 1)
}

func (d deadLetters) bury(ctx context.Context, subject, reason string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	return d.put(ctx, subject, reason, raw)
}
