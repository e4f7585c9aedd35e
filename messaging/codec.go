package messaging

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxEnvelope bounds an encoded envelope in bytes. The streams refuse messages
// over 256 KiB, headers included; 4 KiB are left for those.
const MaxEnvelope = 252 << 10

var (
	// ErrVersion says that an envelope has a schema version other than
	// SchemaVersion.
	ErrVersion = errors.New("unknown schema version")
	// ErrInvalid says that an envelope breaks a rule; the message names the
	// field, its value, and what would be accepted.
	ErrInvalid = errors.New("invalid envelope")
	// ErrTooLarge says that an envelope is longer than MaxEnvelope, or a message
	// longer than its stream takes.
	ErrTooLarge = errors.New("envelope too large")
)

// Envelope is one of *Assignment, *Claim, *Result, *Measurement, *Heartbeat,
// *Control and *LogPart.
type Envelope interface {
	// Validate checks every rule but the size; ErrVersion or ErrInvalid.
	Validate() error
	// Subject is where the envelope is published.
	Subject(shard string) string

	// stamped is a copy to encode, with the schema version set.
	stamped() Envelope
	// received makes what was read fit its bounds before it is checked.
	received()
}

// Encode writes an envelope as JSON, with the current schema version whatever
// its Version says. A failure's message over MaxMessage is cut, so that a long
// last word never keeps a result from being published; everything else out of
// bounds is an error: ErrInvalid or ErrTooLarge.
func Encode(e Envelope) ([]byte, error) {
	v := e.stamped()
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", e, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w: %w", e, ErrInvalid, err)
	}
	if len(data) > MaxEnvelope {
		return nil, fmt.Errorf("encode %T: %w: %d bytes, at most %d", e, ErrTooLarge, len(data), MaxEnvelope)
	}
	return data, nil
}

// Decode reads an envelope from JSON into e, which must be zero. It never
// panics, whatever the bytes. Fields that it does not know are ignored, so that
// a newer sender can add some within a schema version.
func Decode(data []byte, e Envelope) error {
	if len(data) > MaxEnvelope {
		return fmt.Errorf("decode %T: %w: %d bytes, at most %d", e, ErrTooLarge, len(data), MaxEnvelope)
	}
	if err := json.Unmarshal(data, e); err != nil {
		if v := peekVersion(data); v != nil {
			return fmt.Errorf("decode %T: %w", e, v)
		}
		return fmt.Errorf("decode %T: %w: %w", e, ErrInvalid, err)
	}
	e.received()
	if err := e.Validate(); err != nil {
		return fmt.Errorf("decode %T: %w", e, err)
	}
	return nil
}

// DecodeFrom is Decode of a message that came on a subject. An envelope that
// belongs on another subject is refused: its sender may publish on its own
// subjects only, so the subject is the truth about who it is.
func DecodeFrom(subject string, data []byte, e Envelope) error {
	s, err := ParseSubject(subject)
	if err != nil {
		return fmt.Errorf("decode %T: %w", e, err)
	}
	if err := Decode(data, e); err != nil {
		return err
	}
	if want := e.Subject(s.Shard); want != subject {
		return fmt.Errorf("decode %T: %w: came on %q, belongs on %q", e, ErrInvalid, subject, want)
	}
	return nil
}

// peekVersion is the version's error where the data has a version that is not
// ours: a later version may have changed the other fields' types.
func peekVersion(data []byte) error {
	var head struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &head) == nil {
		return checkVersion(head.Version)
	}
	return nil // without a version to read, Decode says what is wrong
}

func (a *Assignment) stamped() Envelope {
	v := *a
	v.Version = SchemaVersion
	return &v
}

func (c *Claim) stamped() Envelope {
	v := *c
	v.Version = SchemaVersion
	return &v
}

func (r *Result) stamped() Envelope {
	v := *r
	v.Version = SchemaVersion
	v.received()
	return &v
}

func (m *Measurement) stamped() Envelope {
	v := *m
	v.Version = SchemaVersion
	return &v
}

func (h *Heartbeat) stamped() Envelope {
	v := *h
	v.Version = SchemaVersion
	return &v
}

func (c *Control) stamped() Envelope {
	v := *c
	v.Version = SchemaVersion
	return &v
}

func (*Assignment) received()  {}
func (*Claim) received()       {}
func (*Measurement) received() {}
func (*Heartbeat) received()   {}
func (*Control) received()     {}

// received cuts the failure's message; the failure is copied, since it may be
// the caller's.
func (r *Result) received() {
	if r.Failure == nil || len(r.Failure.Message) <= MaxMessage {
		return
	}
	f := *r.Failure
	f.Message = cut(f.Message, MaxMessage)
	r.Failure = &f
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
