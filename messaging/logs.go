package messaging

import (
	"cmp"
	"fmt"
)

// MaxLogData bounds LogPart.Data in bytes; MaxLogTail bounds how far before a log's
// end its last lines are looked for.
const (
	MaxLogData = 64 << 10
	MaxLogTail = 4 << 20
)

// LogStream names one of the outputs of a program.
type LogStream string

// The outputs of a program.
const (
	LogStdout LogStream = "stdout"
	LogStderr LogStream = "stderr"
)

// LogRequest asks a worker for one LogPart of an attempt's log.
type LogRequest struct {
	// ID is repeated in the answer. Whoever asks draws a fresh one for each request.
	ID     string    `json:"id"`
	Stream LogStream `json:"stream"`
	// Lines, if not 0, asks for the last lines, from the first of them on, within the
	// last MaxLogTail bytes. Otherwise the part begins at Offset.
	Lines  int   `json:"lines,omitempty"`
	Offset int64 `json:"offset,omitempty"`
}

// validate checks a request.
func (r *LogRequest) validate() error {
	if r == nil {
		return fmt.Errorf("%w: logs is missing", ErrInvalid)
	}
	return cmp.Or(checkToken("logs.id", r.ID), checkLogStream(r.Stream),
		checkAtLeast("logs.lines", r.Lines, 0), checkAtLeast("logs.offset", int(r.Offset), 0))
}

// LogPart is a worker's answer to a LogRequest. It is not stored.
type LogPart struct {
	Version int `json:"version"`
	AttemptID
	Worker  string    `json:"worker"`
	Request string    `json:"request"`
	Stream  LogStream `json:"stream"`
	// Offset is where Data begins in the log, Size how long the log is now.
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	Data   []byte `json:"data,omitempty"`
	// Running says that the attempt was still running before the log was read:
	// there may be more later.
	Running bool `json:"running,omitempty"`
	// Missing says, for people, why there is no log; empty if there is one.
	Missing string `json:"missing,omitempty"`
}

// Validate implements Envelope.
func (p *LogPart) Validate() error {
	err := cmp.Or(
		checkVersion(p.Version), p.AttemptID.validate(), checkWorker(p.Worker), checkToken("request", p.Request),
		checkLogStream(p.Stream), checkAtLeast("offset", int(p.Offset), 0), checkAtLeast("size", int(p.Size), 0),
		checkLength("missing", p.Missing, MaxReference),
	)
	if err == nil && len(p.Data) > MaxLogData {
		err = fmt.Errorf("%w: data of %d bytes, at most %d", ErrInvalid, len(p.Data), MaxLogData)
	}
	return err
}

// Subject is where a part of a log is published.
func (p *LogPart) Subject(shard string) string {
	return Subject{Kind: KindLog, Shard: shard, Worker: p.Worker}.String()
}

func checkLogStream(s LogStream) error {
	if s != LogStdout && s != LogStderr {
		return fmt.Errorf("%w: stream %q, must be %s or %s", ErrInvalid, clip(string(s)), LogStdout, LogStderr)
	}
	return nil
}
