package natsbus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Error codes of the server that a bus handles (server/errors.json of nats-server).
const (
	codeTooLarge        jetstream.ErrorCode = 10054 // the message is larger than the stream takes
	codeWrongSequence   jetstream.ErrorCode = 10071 // the expected sequence is not the last one
	codeStoreFailed     jetstream.ErrorCode = 10077 // among other reasons: a second message on a subject
	codeSequenceBusy    jetstream.ErrorCode = 10164 // another message with an expectation is in flight
	codeBatchIncomplete jetstream.ErrorCode = 10176 // the batch lost a message, or its leader
	codeBatchTooMany    jetstream.ErrorCode = 10210 // too many batches in flight
)

// second is the server's text for a subject that already has its one message; the code
// alone also means a full disk.
const second = "maximum messages per subject exceeded"

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// isSecond reports whether a message was refused because its subject already has one.
func isSecond(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, second)
}

// backoff waits between tries, twice as long each time, up to a limit.
type backoff struct{ next, most time.Duration }

// newBackoff returns the backoff for an outage.
func newBackoff() *backoff {
	return &backoff{next: 25 * time.Millisecond, most: 2 * time.Second}
}

// newContention returns the backoff for conflicts with another message in flight: a new
// leader's fence must get in between an old leader's batches.
func newContention() *backoff {
	return &backoff{next: time.Millisecond, most: 30 * time.Millisecond}
}

// wait returns false if ctx ended first.
func (b *backoff) wait(ctx context.Context) bool {
	t := time.NewTimer(b.next)
	defer t.Stop()
	b.next = min(2*b.next, b.most)
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
