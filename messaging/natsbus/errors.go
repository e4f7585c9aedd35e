package natsbus

import (
	"errors"
	"slices"
	"strings"

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
