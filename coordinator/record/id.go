package record

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewID returns an id for a study that is created at the given time. It is a ULID
// (https://github.com/ulid/spec) in lower case: 26 letters and digits, which fit into
// one token of a NATS subject and one segment of an etcd key. Ids of different
// milliseconds sort by time. NewID reads ten bytes from entropy, which is
// crypto/rand.Reader outside tests. It panics if entropy fails, and for times before
// 1970 or after 10889. It is as safe for concurrent use as entropy is.
func NewID(entropy io.Reader, at time.Time) string {
	return strings.ToLower(ulid.MustNew(ulid.Timestamp(at), entropy).String())
}

// ResourceID returns the id of the study of a Kubernetes resource: like one of NewID at the time that
// the resource was created, with bits of its UID in place of random ones.
func ResourceID(uid string, created time.Time) string {
	bits := sha256.Sum256([]byte(uid))
	return NewID(bytes.NewReader(bits[:]), created)
}
