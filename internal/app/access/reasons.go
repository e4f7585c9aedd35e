package access

import (
	"log/slog"
	"sync"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// maxSaid is the number of logged reasons that are remembered.
const maxSaid = 32

// Reasons logs why attempts to connect fail. As attempts follow each other quickly, it
// logs each reason only once until an attempt succeeds. It is safe for concurrent use.
type Reasons struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]bool // since the last success
}

// NewReasons logs to log.
func NewReasons(log *slog.Logger) *Reasons { return &Reasons{log: log} }

// Say logs a failed attempt, unless its reason was already logged.
func (s *Reasons) Say(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := err.Error()
	if s.said[text] {
		return
	}
	if s.said == nil || len(s.said) >= maxSaid {
		s.said = map[string]bool{}
	}
	s.said[text] = true
	s.log.Warn(what, telemetry.LogError, err)
}

// Forget records a successful attempt.
func (s *Reasons) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = nil
}
