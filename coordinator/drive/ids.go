package drive

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
)

// IDs draws the engine's ids from the system's source of randomness.
type IDs struct{}

var _ engine.IDs = IDs{}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails: see crypto/rand
	return hex.EncodeToString(b)
}

// Nonce returns 96 random bits.
func (IDs) Nonce() string { return random(12) }

// Trace returns a W3C trace id.
func (IDs) Trace() string { return random(16) }

// Span returns a W3C span id.
func (IDs) Span() string { return random(8) }
