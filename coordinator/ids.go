package coordinator

import (
	"crypto/rand"
	"encoding/hex"
)

// ids draws the engine's ids from the system's source of randomness.
type ids struct{}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails: see crypto/rand
	return hex.EncodeToString(b)
}

// Nonce returns 96 random bits.
func (ids) Nonce() string { return random(12) }

// Trace returns a W3C trace id.
func (ids) Trace() string { return random(16) }

// Span returns a W3C span id.
func (ids) Span() string { return random(8) }
