package testenv

import (
	"strings"
	"sync"
)

// Text is a writer that keeps all that is written to it, such as a log. The zero value is
// empty. It is safe for concurrent use.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String returns what was written.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Has reports whether a part was written.
func (t *Text) Has(part string) bool { return strings.Contains(t.String(), part) }
