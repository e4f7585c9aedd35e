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
	// archiveTimeout bounds one call to the dead-letter queue, since the loop waits
	// for it.
	archiveTimeout = 3 * time.Second
	// maxCut is how many bytes are archived of a message that is too large for the
	// dead-letter queue.
	maxCut = 4 << 10
)

// deadLetters archives messages that change nothing, so that people can inspect them.
type deadLetters struct {
	log     *slog.Logger
	metrics *metrics
	put     func(ctx context.Context, subject, reason string, raw []byte) error // messaging.Leader.Archive
}

// archive puts a message into the dead-letter queue. It MUST be called BEFORE the
// cursor moves past the message: then a crash archives it twice rather than never.
// If the queue refuses the message, archive logs and counts it. It does not end the
// term, since the queue would refuse the message of every other leader too.
func (d deadLetters) archive(ctx context.Context, subject, reason string, raw []byte) {
	err := d.bury(ctx, subject, reason, raw)
	if errors.Is(err, messaging.ErrTooLarge) {
		err = d.bury(ctx, subject, "cut short: "+reason, raw[:min(len(raw), maxCut)])
	}
	if err == nil {
		return
	}
	d.log.Error("could not put a message into the dead-letter queue", "subject", subject, telemetry.LogReason, reason,
		"bytes", len(raw), telemetry.LogError, err)
	d.metrics.unarchived.Add(ctx, 1)
}

func (d deadLetters) bury(ctx context.Context, subject, reason string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	return d.put(ctx, subject, reason, raw)
}
